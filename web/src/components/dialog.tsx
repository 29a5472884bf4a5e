/** Dialogs. A question about an act says what will happen before it does. */
import { useState, type ReactNode } from "react";
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from "react-aria-components";
import { ErrorState } from "./states-of-page";
import { Icon } from "./icon";

export function Dialog(props: {
  title: string;
  open: boolean;
  onClose: () => void;
  children: ReactNode;
  footer?: ReactNode;
  wide?: boolean;
}) {
  return (
    <ModalOverlay isOpen={props.open} onOpenChange={(open) => !open && props.onClose()} isDismissable className="overlay">
      <Modal className={props.wide ? "modal wide" : "modal"}>
        <AriaDialog className="dialog" data-modal="">
          <header className="dialog-head">
            <Heading slot="title">{props.title}</Heading>
            <button type="button" className="icon-button" aria-label="Close" onClick={props.onClose}>
              <Icon name="close" />
            </button>
          </header>
          <div className="dialog-body">{props.children}</div>
          {props.footer && <footer className="dialog-foot">{props.footer}</footer>}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
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
      {error !== null && <ErrorState error={error} compact />}
    </Dialog>
  );
}
