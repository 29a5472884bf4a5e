"""A grid in virtual time: sites with hosts, pilots, storage elements and batch systems around the product's services.

The services, the exchange with pilots, what caches keep and how many pilots a site gets are the product's own. Only
what stands for the world is made here: how long things take, and what goes wrong."""
