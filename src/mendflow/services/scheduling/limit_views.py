"""Named limits as people see them."""

from mendflow.core.model.errors import NotFound
from mendflow.core.model.ids import Instant
from mendflow.core.model.named_limits import LimitDocument, LimitHolderView, LimitView
from mendflow.core.model.projects import is_quota_name
from mendflow.core.scheduling.limit_decisions import fresh_demands


def demand_no_quota(name: str) -> None:
    if is_quota_name(name):
        raise NotFound(f"there is no limit {name!r:.100}; quotas of projects are in `mendflow admin projects`")


def view_of(document: LimitDocument, now: Instant) -> LimitView:
    return LimitView(
        name=document.name,
        project=document.project,
        count=document.count,
        used=document.used,
        waiting=sum(each.jobs for each in fresh_demands(document, now).values()),
        set_by=document.set_by,
        set_at=document.set_at,
        jobs=[
            LimitHolderView(job=job, amount=hold.amount, since=hold.since)
            for job, hold in sorted(document.holds.items(), key=lambda each: each[1].since)
        ],
    )
