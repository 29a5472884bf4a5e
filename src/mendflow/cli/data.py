"""Commands about data: logical files, storage elements, data sets, and folders that are watched for files."""

from mendflow.cli import data_files, data_sets, data_storage, data_watch
from mendflow.cli.groups import grouped

app = grouped(
    "data",
    "Logical files, storage elements, data sets and watched folders.",
    [
        (data_files.app, ("files",)),
        (data_sets.app, ("sets",)),
        (data_storage.app, ("storage",)),
        (data_watch.app, ("watch",)),
    ],
)
