"""The experiments of "CMS Workflow Execution using Intelligent Job Scheduling and Data Access Strategies" (Hasham and
others), once more, with our scheduler, caches and pilot monitor in the place of theirs.

The paper's setting is data (`workflows`, `settings`), a run of it gives a few numbers (`samples`), and everything that
the paper states of those numbers is a claim that can be asked whether it holds (`claims`)."""

from experiments.paper.report import PaperReport, paper

__all__ = ["PaperReport", "paper"]
