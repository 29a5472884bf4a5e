"""mendflow: job flows that mend themselves."""
