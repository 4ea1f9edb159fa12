"""On-chain data: every record exactly once, with its exact value, or an error that says what is missing.

>>> import chainframe as cf
>>> with cf.Client() as client:  # settings come from CHAINFRAME_BASE_URL, CHAINFRAME_API_KEY, ...
...     frame = client.tokens().to_pandas()
"""

from chainframe import _frame_protocols, _functions, _sequence
from chainframe._native import (
    AddressTransaction,
    Block,
    Cache,
    ChainTransaction,
    Client,
    CrossChainTransaction,
    DecodedLogs,
    Deployment,
    Estimate,
    Event,
    EventLog,
    Follow,
    Hint,
    LargeTransaction,
    Page,
    Query,
    RateLimitState,
    Record,
    Records,
    Report,
    Token,
    TokenTransfer,
    Transaction,
    Undo,
    Usage,
    __version__,
)
from chainframe.errors import (
    AuthenticationError,
    BadRequestError,
    BudgetExceededError,
    CassetteError,
    CassetteMissError,
    ChainframeError,
    ClockSkewError,
    ConfigError,
    ContextError,
    ExportError,
    FollowGapError,
    IncompleteResultError,
    IncompleteResultWarning,
    InvalidParameterError,
    NotFoundError,
    NumericOverflowError,
    PaginationDriftError,
    PaginationError,
    PermissionDeniedError,
    RateLimitError,
    ReorganizationError,
    RequestTimeoutError,
    ResponseFormatError,
    ResultWindowError,
    ServiceError,
    ServiceUnavailableError,
    SettledHeightError,
    TransportError,
)

TYPE_CHECKING = False  # `typing` would take longer to import than the rest of the package
if TYPE_CHECKING:
    from chainframe._credentials import Credentials
    from chainframe.attempts import Attempt

__all__ = [
    "AddressTransaction",
    "Attempt",
    "AuthenticationError",
    "BadRequestError",
    "Block",
    "BudgetExceededError",
    "Cache",
    "CassetteError",
    "CassetteMissError",
    "ChainTransaction",
    "ChainframeError",
    "Client",
    "ClockSkewError",
    "ConfigError",
    "ContextError",
    "Credentials",
    "CrossChainTransaction",
    "DecodedLogs",
    "Deployment",
    "Estimate",
    "Event",
    "EventLog",
    "ExportError",
    "Follow",
    "FollowGapError",
    "Hint",
    "IncompleteResultError",
    "IncompleteResultWarning",
    "InvalidParameterError",
    "LargeTransaction",
    "NotFoundError",
    "NumericOverflowError",
    "Page",
    "PaginationDriftError",
    "PaginationError",
    "PermissionDeniedError",
    "Query",
    "RateLimitError",
    "RateLimitState",
    "Record",
    "Records",
    "ReorganizationError",
    "Report",
    "RequestTimeoutError",
    "ResponseFormatError",
    "ResultWindowError",
    "ServiceError",
    "ServiceUnavailableError",
    "SettledHeightError",
    "Token",
    "TokenTransfer",
    "Transaction",
    "TransportError",
    "Undo",
    "Usage",
    "__version__",
]

if not TYPE_CHECKING:
    from chainframe._native import _package_attribute as __getattr__  # noqa: F401 - called by Python

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


if _functions.is_testing():
    _functions.define_methods()
_functions.define_constructors(Client, Deployment, Cache)

del _frame_protocols, _functions, _sequence, TYPE_CHECKING
