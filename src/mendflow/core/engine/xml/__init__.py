"""XML data of a case, as WS-BPEL 2.0 has it: what is declared where, copies between places, messages, faults."""
