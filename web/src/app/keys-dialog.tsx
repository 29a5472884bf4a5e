import { Link } from "@tanstack/react-router";
import { Dialog } from "@/components/dialog";
import { KeyList } from "./key-list";

/** The keys of this page, and the way to what the words mean. */
export function KeysDialog({ open, onClose }: { open: boolean; onClose: () => void }) {
  return (
    <Dialog title="Keys" open={open} onClose={onClose} wide>
      <KeyList />
      <p>
        <Link to="/help" onClick={onClose}>
          Help: what the words mean, and where to read more
        </Link>
      </p>
    </Dialog>
  );
}
