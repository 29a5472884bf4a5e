"""Connected domains: their names, and which of them can do a piece of work best. Pure."""
