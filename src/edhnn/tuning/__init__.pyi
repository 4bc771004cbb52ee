from .run import ValidationScore as ValidationScore
from .run import tune as tune
from .search import Search as Search
from .search import TrialSummary as TrialSummary
from .search import TuningResult as TuningResult
from .search import write_winner as write_winner
