"""Files to and from storage elements: whatever fsspec can speak to, with one manner of failing and one of being whole.

A file that arrives is not there until all of it is, and its digest was taken from what lies on the disk here, not from
what came over a line. A file that leaves is written where nobody looks, and gets its name in one step at the end."""
