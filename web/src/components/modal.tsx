/** The frame of a dialog: it takes the focus, keeps it, and gives it back. Loaded with the first dialog. */
import type { ReactNode } from "react";
import { Dialog as AriaDialog, Heading, Modal as AriaModal, ModalOverlay } from "react-aria-components";
import { Icon } from "./icon";

export interface ModalProps {
  title: string;
  open: boolean;
  onClose: () => void;
  children: ReactNode;
  footer?: ReactNode;
  wide?: boolean;
}

export default function Modal(props: ModalProps) {
  return (
    <ModalOverlay isOpen={props.open} onOpenChange={(open) => !open && props.onClose()} isDismissable className="overlay">
      <AriaModal className={props.wide ? "modal wide" : "modal"}>
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
      </AriaModal>
    </ModalOverlay>
  );
}
