/** Dialogs. A question about an act says what will happen before it does. */
import { lazy, Suspense, useState, type ReactNode } from "react";
import { ErrorState } from "./states-of-page";
import type { ModalProps } from "./modal";

/** Also asked for while nobody is busy, so that it is there when the server is not. */
export const loadModal = () => import("./modal");
const Modal = lazy(loadModal);

export function Dialog(props: ModalProps) {
  const [opened, setOpened] = useState(props.open);
  if (props.open && !opened) setOpened(true);
  if (!opened) return null;
  return (
    <Suspense>
      <Modal {...props} />
    </Suspense>
  );
}

/** Asks before an act: `will` says in sentences what it does. Stays open, with what the API said, if it is refused. */
export function ConfirmDialog(props: {
  title: string;
  will: ReactNode;
  act: string;
  danger?: boolean;
  open: boolean;
  disabled?: boolean;
  /** Asked when the button is pressed: whether the form is right. Else the dialog stays, and its fields say what is wrong. */
  isReady?: () => boolean;
  onClose: () => void;
  onAct: () => Promise<unknown>;
}) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const close = () => {
    setError(null);
    props.onClose();
  };
  const act = async () => {
    if (props.isReady && !props.isReady()) return;
    setBusy(true);
    setError(null);
    try {
      await props.onAct();
      props.onClose();
    } catch (refused) {
      setError(refused);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={props.title}
      open={props.open}
      onClose={close}
      footer={
        <>
          {error !== null && <div className="dialog-refused"><ErrorState error={error} compact /></div>}
          <button type="button" className="button" onClick={close}>
            Not now
          </button>
          <button
            type="button"
            className={props.danger ? "button danger" : "button primary"}
            disabled={busy || props.disabled}
            onClick={() => void act()}
          >
            {props.act}
          </button>
        </>
      }
    >
      {props.will}
    </Dialog>
  );
}
