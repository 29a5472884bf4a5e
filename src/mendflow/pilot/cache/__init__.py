"""Files, by digest, that a pilot keeps because a later job may read them."""
