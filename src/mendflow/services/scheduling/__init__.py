"""Queue and pilots: the exchange with pilots, the assignment of jobs, records of pilots and their caches, sites."""
