"""XML data of a case, as in WS-BPEL 2.0: declarations, copies, messages, faults."""
