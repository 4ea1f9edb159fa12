"""Error classes of chainframe, and its one warning. The native core raises them."""

from chainframe.errors.base import (
    ChainframeError,
    ConfigError,
    ContextError,
    InvalidParameterError,
)
from chainframe.errors.files import (
    CassetteError,
    CassetteMissError,
    ExportError,
    SettledHeightError,
)
from chainframe.errors.results import (
    BudgetExceededError,
    FollowGapError,
    IncompleteResultError,
    IncompleteResultWarning,
    NumericOverflowError,
    PaginationDriftError,
    PaginationError,
    ReorganizationError,
    ResultWindowError,
)
from chainframe.errors.service import (
    AuthenticationError,
    BadRequestError,
    ClockSkewError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
    ServiceError,
    ServiceUnavailableError,
)
from chainframe.errors.transport import (
    RequestTimeoutError,
    ResponseFormatError,
    TransportError,
)

__all__ = [
    "AuthenticationError",
    "BadRequestError",
    "BudgetExceededError",
    "CassetteError",
    "CassetteMissError",
    "ChainframeError",
    "ClockSkewError",
    "ConfigError",
    "ContextError",
    "ExportError",
    "FollowGapError",
    "IncompleteResultError",
    "IncompleteResultWarning",
    "InvalidParameterError",
    "NotFoundError",
    "NumericOverflowError",
    "PaginationDriftError",
    "PaginationError",
    "PermissionDeniedError",
    "RateLimitError",
    "ReorganizationError",
    "RequestTimeoutError",
    "ResponseFormatError",
    "ResultWindowError",
    "ServiceError",
    "ServiceUnavailableError",
    "SettledHeightError",
    "TransportError",
]

# Tracebacks name the classes as users import them.
for _name in __all__:
    globals()[_name].__module__ = __name__
