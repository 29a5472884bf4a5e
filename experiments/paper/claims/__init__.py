"""Everything that the paper states of its figures 7 to 12, sentence by sentence."""

from typing import Final

from experiments.paper.claims import of_caching, of_hits, of_storage, of_submission
from experiments.paper.claims.judging import Claim

CLAIMS: Final[tuple[Claim, ...]] = (
    *of_submission.CLAIMS,
    *of_storage.CLAIMS,
    *of_caching.CLAIMS,
    *of_hits.CLAIMS,
)
