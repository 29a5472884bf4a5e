"""The ports of this server: jobs and calls that other engines ask for over SOAP, each run as a case."""
