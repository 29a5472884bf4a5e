"""The ports of this server: jobs and calls that other engines request over SOAP, each run as a case."""
