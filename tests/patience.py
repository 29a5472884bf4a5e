"""How long a test waits for what must come about. It goes on as soon as that has, so only a failure takes this long;
with less a busy machine would break it. What must be quick is measured elsewhere."""

PATIENCE_S = 200.0
