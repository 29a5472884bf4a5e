"""Which files a cache keeps, which go, and how large it may be."""
