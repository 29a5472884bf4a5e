"""A simulated grid: sites with hosts, pilots, storage elements and batch systems around the product's services.

The services, the exchange with pilots, cache policies and the number of pilots per site are the product's own code.
Only the environment is simulated: how long things take, and what fails."""
