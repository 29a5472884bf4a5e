"""Projects as people see them."""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from mendflow.core.model.ids import Instant
from mendflow.core.model.named_limits import LimitDocument
from mendflow.core.model.projects import ProjectDocument, ProjectUse, ProjectView, QuotaKind, UserUsageView, quota_name
from mendflow.core.scheduling.fair_share import FairShares, entitled


class ProjectViews:
    def __init__(
        self,
        documents: Mapping[str, ProjectDocument],
        quotas: Mapping[str, LimitDocument],
        shares: FairShares,
        now: Instant,
    ) -> None:
        self._documents = documents
        self._quotas = quotas
        self._shares = shares
        self._now = now

    def of(self, name: str) -> ProjectView:
        document = self._documents.get(name) or ProjectDocument(name=name)
        usage = self._shares.project_usage(name, self._now)
        return ProjectView(
            name=name,
            settings=document.settings,
            used=ProjectUse(
                cpu_s=round(usage.cpu_ms / 1000, 1),
                cpus=round(usage.cpus, 3),
                cases=self._used(name, "cases"),
                waiting_jobs=self._used(name, "waiting-jobs"),
                running_jobs=self._used(name, "running-jobs"),
                memory_bytes=self._used(name, "memory"),
                stored_bytes=self._used(name, "stored-bytes"),
            ),
            users=[self._user(name, user) for user in self._shares.users(name)],
            set_by=document.set_by,
            set_at=document.set_at,
        )

    def all(self, names: Iterable[str]) -> list[ProjectView]:
        """The projects, with what each is entitled to and has had of what all have used."""
        views = [self.of(name) for name in names]
        shares = entitled({view.name: view.settings.weight for view in views})
        total = sum(view.used.cpu_s for view in views)
        return [_with_share(view, shares[view.name], view.used.cpu_s / total if total else 0.0) for view in views]

    def _used(self, name: str, kind: QuotaKind) -> int | None:
        document = self._quotas.get(quota_name(name, kind))
        return max(0, document.used) if document is not None and document.count is not None else None

    def _user(self, project: str, user: str) -> UserUsageView:
        usage = self._shares.user_usage(project, user, self._now)
        return UserUsageView(
            user=user,
            weight=self._shares.user_weight(project, user),
            cpu_s=round(usage.cpu_ms / 1000, 1),
            cpus=round(usage.cpus, 3),
        )


def _with_share(view: ProjectView, share: float, used_share: float) -> ProjectView:
    return replace(view, share=round(share, 4), used_share=round(used_share, 4))
