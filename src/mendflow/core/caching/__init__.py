"""Which files a cache keeps, which it evicts, and how large it may be."""
