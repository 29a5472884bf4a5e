"""Several domains in the simulated world: lines between them, what goes wrong with them, and the laws."""
