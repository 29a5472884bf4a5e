"""The pilot: pulls jobs from a server and runs them, one per slot.

Four kinds of process share the work so that no single death loses a job or leaves one unwatched. The *agent* speaks
with the server and decides which slot runs what. A *slot* owns one running attempt and outlives its agent. A *worker*
is a slot's warm Python interpreter, and dies with it. The *guard* kills what neither agent nor slot is left to kill."""
