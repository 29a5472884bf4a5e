"""Commands of those who run servers: servers, sites, notifications, archives of cases, tokens."""

from mendflow.cli import archive, lists, setup, sites, top, webhooks
from mendflow.cli.groups import grouped

app = grouped(
    "admin",
    "Servers, sites, notifications, archives of cases, tokens.",
    [
        (lists.app, ("servers",)),
        (top.app, ("top",)),
        (sites.app, ("sites",)),
        (webhooks.app, ("notifications", "webhooks")),
        (archive.app, ("export", "import")),
        (setup.app, ("token", "completion")),
    ],
)
