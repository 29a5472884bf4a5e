"""Rule sets: every version is stored, the newest is compiled; people read, extend and try them."""
