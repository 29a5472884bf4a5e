"""`python -m mendflow.pilot --server URL --work FOLDER`: starts without the rest of the product."""

import sys

from mendflow.pilot.main import main

sys.exit(main())
