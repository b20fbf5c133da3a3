"""Settings of every process: which login it uses comes from MEMBERINTEL_PROCESS, all else from variables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.templatetags.static import static
from django.urls import reverse_lazy

from memberintel import env

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = env.path("MEMBERINTEL_DATA", BASE_DIR / ".data")

PROCESS = env.text("MEMBERINTEL_PROCESS", "web")
if PROCESS not in {"web", "worker", "owner", "support"}:
    raise env.Misconfigured(f"MEMBERINTEL_PROCESS must be web, worker, owner or support, not {PROCESS!r}.")

EMBEDDED = env.flag("MEMBERINTEL_EMBEDDED")
DEBUG = False
SECRET_KEY = env.text("SECRET_KEY")
ALLOWED_HOSTS = env.names("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]" if EMBEDDED else "")
CSRF_TRUSTED_ORIGINS = env.names("CSRF_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "unfold.apps.BasicAppConfig",
    "memberintel.apps.DeskConfig",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_rls",
    "memberintel.apps.ProjectConfig",
    "memberintel.tenancy",
    "memberintel.vault",
    "memberintel.usage",
    "memberintel.accounts",
    "memberintel.privacy",
    "brain",
    "sessions",
    "wrapups",
]

MIDDLEWARE = [
    "memberintel.metrics.Counting",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "memberintel.threads.InOneGo",
]

ROOT_URLCONF = "memberintel.urls"
ASGI_APPLICATION = "memberintel.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "memberintel.accounts.context.page",
            ],
        },
    }
]

# --- database: one login per kind of process -------------------------------------------------------------

# The group role a scope enters at BEGIN; a login without one cannot touch tenant tables.
TENANT_ROLES = {"web": "web_tenant", "worker": "worker_tenant"}


def _database(login: str) -> dict[str, Any]:
    entry = env.database(f"DATABASE_URL_{login.upper()}")
    pool = {"min_size": 0, "max_size": DATABASE_POOL, "timeout": 10, "max_idle": 60}
    return entry | {
        "ENGINE": "memberintel.tenancy.backend",
        "CONN_MAX_AGE": 0,
        "ATOMIC_REQUESTS": False,
        "DISABLE_SERVER_SIDE_CURSORS": True,  # PgBouncer in transaction mode may stand in between
        "TENANT_ROLE": TENANT_ROLES.get(login),
        "OPTIONS": entry["OPTIONS"] | {"pool": pool if DATABASE_POOL and login != "owner" else False},
    }


DATABASE_POOL = env.whole("DATABASE_POOL", 8)
DATABASES = {"default": _database(PROCESS)}
if PROCESS == "web" and env.text("DATABASE_URL_SUPPORT", " ").strip():
    DATABASES["support"] = _database("support")

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DJANGO_RLS = {
    "AUTO_ENABLE_RLS": False,
    "RESET_CONTEXT_ON_CONNECT": False,
    "STRICT_MIGRATE_RLS": True,
}

# --- sign-in ---------------------------------------------------------------------------------------------

AUTH_USER_MODEL = "tenancy.User"
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
ACCOUNT_ADAPTER = "memberintel.accounts.adapters.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_EMAIL_VERIFICATION = "optional"
ACCOUNT_CHANGE_EMAIL = True  # one address each; a new one counts once it is confirmed
ACCOUNT_REAUTHENTICATION_REQUIRED = True  # before an address is changed
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_LOGOUT_ON_GET = False
ACCOUNT_RATE_LIMITS = {  # see docs/adr/0005-sign-in-limits.md; the others are allauth's own
    "login": "30/m/ip",
    "login_failed": "10/m/ip,5/300s/key",
    "reset_password": "20/m/ip,5/m/key",
    "signup": "20/m/ip",
}
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/chat/"
ACCOUNT_LOGOUT_REDIRECT_URL = "/"

MFA_ADAPTER = "memberintel.accounts.two_factor.TwoFactorAdapter"
MFA_FORMS = {"activate_totp": "memberintel.accounts.two_factor.ActivateForm"}
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_TOTP_TOLERANCE = 1  # a code counts half a minute longer: telephones' clocks are off

# --- mail: written to files on one machine ---------------------------------------------------------------

MAILERS: dict[str, Any] = {
    "default": (
        {
            "BACKEND": "django.core.mail.backends.filebased.EmailBackend",
            "OPTIONS": {"file_path": DATA_DIR / "mail"},
        }
        if EMBEDDED
        else {
            "BACKEND": "django.core.mail.backends.smtp.EmailBackend",
            "OPTIONS": {
                "host": env.text("SMTP_HOST", "localhost"),
                "port": env.whole("SMTP_PORT", 587),
                "username": env.text("SMTP_USER", " ").strip(),
                "password": env.text("SMTP_PASSWORD", " ").strip(),
                "use_tls": env.flag("SMTP_TLS", True),
            },
        }
    )
}
DEFAULT_FROM_EMAIL = env.text("DEFAULT_FROM_EMAIL", "MemberIntel <advisor@localhost>")

# --- API -------------------------------------------------------------------------------------------------

API_LIMITS = {
    "read": 600,
    "write": 120,
    "say": 60,
    "export": 6,
    "erase": 10,
}  # requests of one customer in a minute, by kind
REST_FRAMEWORK = {"DEFAULT_SCHEMA_CLASS": "memberintel.accounts.openapi.Schema"}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "MemberIntel",
    "VERSION": "1",
    "DESCRIPTION": "Everything the pages do, for your own tools.",
    "OAS_VERSION": "3.1.1",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "ENUM_NAME_OVERRIDES": {"Author": "brain.models.AUTHORS"},
    "SERVE_INCLUDE_SCHEMA": False,
    "APPEND_COMPONENTS": {
        "securitySchemes": {
            "token": {"type": "http", "scheme": "bearer", "description": "A personal token, `mi_…`."},
            "session": {
                "type": "apiKey",
                "in": "cookie",
                "name": "sessionid",
                "description": "A signed-in browser; what changes something also needs the header `X-CSRFToken`.",
            },
        }
    },
}

# --- queue -----------------------------------------------------------------------------------------------

METRICS_TOKEN = env.text("METRICS_TOKEN", " ").strip()  # who may read /metrics; without one nobody

REDIS_URL = env.text("REDIS_URL", "")
CACHES: dict[str, Any] = {
    "default": {
        "BACKEND": "memberintel.accounts.attempts.Attempts",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": f"attempts-{DATABASES['default']['NAME']}",  # another database has other people
        "OPTIONS": {"socket_connect_timeout": 0.25, "socket_timeout": 0.25},
    }
    if REDIS_URL
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
}

# --- vault -----------------------------------------------------------------------------------------------

# Who supplies the key-encryption keys: a function giving Keks. A cloud KMS is one more such function.
KEK_SOURCE = "memberintel.vault.kek.from_settings"
KEK = env.text("MEMBERINTEL_KEK", " ").strip()
KEK_FILE = env.text("MEMBERINTEL_KEK_FILE", " ").strip()
KEK_OLD = env.text("MEMBERINTEL_KEK_OLD", " ").strip()
KEK_OLD_FILE = env.text("MEMBERINTEL_KEK_OLD_FILE", " ").strip()

# --- models: "provider:model", tried from left to right; a provider without a key is passed over -----------

PURPOSES = ("chat", "wrap_up", "journal", "mood", "distill", "compact", "title", "judge", "embed")
_CHEAP = "anthropic:claude-haiku-5-5,gemini:gemini-2.5-flash,gemini:gemini-3.5-flash-lite"
_ROUTES = {
    "chat": "anthropic:claude-fable-5-1,anthropic:claude-opus-5-5,anthropic:claude-sonnet-5-5,gemini:gemini-3.8-flash",
    "wrap_up": "gemini:gemini-2.5-flash,gemini:gemini-3.5-flash-lite,anthropic:claude-haiku-5-5",
    "journal": _CHEAP,
    "mood": _CHEAP,
    "distill": f"{_CHEAP},offline:extractive",
    "compact": _CHEAP,
    "title": f"{_CHEAP},offline:extractive",
    "judge": _CHEAP,
    # A key alone does not change it: vectors of two models cannot be compared, all would have to be made anew.
    "embed": "offline:words-and-stems-1",
}
# The offline advisor answers what it can while no provider has a key.
_WITHOUT_KEY = {"chat", "wrap_up", "compact", "journal", "mood"}
LLM_ROUTES: dict[str, tuple[str, ...]] = {  # LLM_ROUTE_CHAT=provider:model,provider:model re-routes chat
    purpose: tuple(
        env.names(
            f"LLM_ROUTE_{purpose.upper()}",
            f"{_ROUTES[purpose]},offline:extractive" if purpose in _WITHOUT_KEY else _ROUTES[purpose],
        )
    )
    for purpose in PURPOSES
}
LLM_BACKENDS = {
    "anthropic": "memberintel.llm.backends.anthropic.Anthropic",
    "gemini": "memberintel.llm.backends.gemini.Gemini",
    "offline": "memberintel.llm.backends.offline.Offline",
    "scripted": "memberintel.llm.backends.scripted.Scripted",
}
# The variables any one of which lets a provider be called; without any it is skipped. Empty: needs none.
LLM_KEYS: dict[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "gemini": ("GOOGLE_CLOUD_PROJECT", "GEMINI_API_KEY"),
    "offline": (),
    "scripted": (),
}
# Seconds each phase of a turn may take. `first_token` and `stream` are of one call of the model: to its first piece
# (and from each to the next), and with all repeats and fallbacks to its last. An answer that uses tools takes several.
TURN_DEADLINES = {
    "persist": 10,
    "recall": 3,
    "first_token": 60,
    "stream": 300,
    "tool": 20,
    "distill": 8,
    "compact": 60,
    "title": 15,
}
LLM_DEADLINES = {  # seconds for one answer, with all repeats and fallbacks, to its last piece
    "chat": TURN_DEADLINES["stream"],
    "wrap_up": 60,
    "journal": 60,
    "mood": 30,
    "distill": TURN_DEADLINES["distill"],
    "compact": TURN_DEADLINES["compact"],
    "title": TURN_DEADLINES["title"],
    "judge": 60,
    "embed": 10,
}
LLM_SILENCE_DEFAULT = 30  # seconds one call may take to its first piece, and from a piece to the next
LLM_SILENCE = {"chat": TURN_DEADLINES["first_token"], "compact": 45, "title": 10}
LLM_PATIENCE: dict[str, Any] = {
    "tries": 3,
    "first_wait": 0.5,
    "longest_wait": 8.0,
}  # calls of one model; seconds
LLM_OPTIONS: dict[str, dict[str, Any]] = {  # beside these a model runs on its provider's defaults
    "chat": {"max_output_tokens": 8192, "reasoning": True},
    "wrap_up": {"max_output_tokens": 2048},
    "journal": {"max_output_tokens": 400, "temperature": 0.3},
    "compact": {"max_output_tokens": 6_144},
    "title": {"max_output_tokens": 64},
}
LLM_WINDOWS = {  # input tokens, for models whose provider does not tell; from their pages, November 2026
    "offline:extractive": 200_000,
    "offline:words-and-stems-1": 200_000,
    "anthropic:claude-fable-5-1": 1_000_000,
    "anthropic:claude-opus-5-5": 1_000_000,
    "anthropic:claude-sonnet-5-5": 1_000_000,
    "anthropic:claude-haiku-5-5": 1_000_000,
    "gemini:gemini-2.5-flash": 1_048_576,
    "gemini:gemini-2.5-flash-lite": 1_048_576,
    "gemini:gemini-3.5-flash-lite": 1_048_576,
    "gemini:gemini-3.8-flash": 1_048_576,
}
LLM_WINDOW_UNKNOWN = 100_000
LLM_WINDOW_MOST = env.whole(
    "LLM_WINDOW_MOST", 0
)  # no request is larger, whatever a model takes; 0 is no such limit
LLM_PRICES_READ = (
    "November 2026"  # when those of memberintel/llm/prices.py were taken from the providers' lists
)
LLM_OFFLINE_PACE_SECONDS = 0.01  # between two pieces of an offline answer, so that it reads like one

# --- the external memory: off without a key, and for a tenant until an owner agrees ------------------------

SUPERMEMORY_API_KEY = env.text("SUPERMEMORY_API_KEY", " ").strip()
SUPERMEMORY_BASE_URL = env.text("SUPERMEMORY_BASE_URL", " ").strip()
SUPERMEMORY_SECONDS = 20

# --- the advisor -----------------------------------------------------------------------------------------

# The system prompt, section by section, in this order.
PROMPT_SECTIONS = [
    "brain.sections.base",
    "brain.sections.soul",
    "brain.sections.bible",
    "brain.heartbeat.sections.heartbeat",
    "wrapups.sections.recent",
]

# What is looked up for each message, and kept with it; the first message's stands in the system prompt.
RECALL_SECTIONS: list[str] = ["brain.memory.recall.section", "brain.shared.recall.section"]

# What the advisor may use in a turn, in the order in which a model is offered it.
ADVISOR_TOOLS: list[str] = [
    "brain.tools.update_customer_brain",
    "brain.memory.tools.search_memory",
    "sessions.tools.search_sessions",
    "brain.heartbeat.tools.site_metrics",
]

# Where parts of prompts come from: how to ask whether a source still stands, and where it can be read.
PROMPT_SOURCES = {
    "soul": "brain.sources.document",
    "bible": "brain.sources.document",
    "heartbeat": "brain.heartbeat.sections.source",
    "memory": "brain.memory.sources.memory",
    "shared": "brain.shared.sources.article",
    "wrap_up": "wrapups.sources.wrap_up",
    "wrap_up_draft": "wrapups.sources.draft",
}

# Who keeps something about a customer: see memberintel.privacy.participants.
PRIVACY_PARTICIPANTS = ["brain.privacy", "sessions.privacy", "wrapups.privacy", "memberintel.privacy.own"]

# The day's work, in this order: what its runs are called, and the function, which is given its run to count in.
DAILY_STEPS = {
    "metrics_sync": "brain.heartbeat.tasks.sync_due",
    "wrap_up_backfill": "wrapups.tasks.do_what_was_missed",
    "retention": "memberintel.privacy.retention.step",
    "monthly_report": "memberintel.report.step",
    "pooling": "wrapups.pooling.review.step",
}
# Steps that are not always wanted, and what says whether they are: otherwise no run of theirs is begun.
DAILY_STEPS_WHERE = {"pooling": "wrapups.pooling.choices.running"}

# Pooling across tenants: see docs/adr/0006-what-pooling-shows.md before making either larger or smaller.
POOLING_SHARE = 0.8  # of the tenants that take part, drawn anew for each review
POOLING_EVERY_DAYS = 7

# Tokens each section of a prompt may have, of text as it was written; entries above it give way whole, and the
# section says so. Documents within their own limits always fit.
SECTION_BUDGETS = {
    "soul": 2_000,
    "bible": 8_000,
    "heartbeat": 2_000,
    "wrap_ups": 8_000,
    "memory": 2_000,
    "shared_knowledge": 4_000,
}

MEMORY_LIMIT_CHARACTERS = 600  # of one entry: it holds one insight
# From which cosine on something is recalled for a message: by embedder, another embedder, word stems (where there are
# no vectors to compare). Chosen from `python -m evals.retrieval`: at 0.25 the offline embedder keeps nearly every
# answer it has among its first five, and an eighth to a quarter of unrelated messages recall anything. Gemini's is a
# careful guess, made without a key: measure it with `--route gemini:gemini-embedding-001`.
RECALL_THRESHOLDS: dict[str, Any] = {
    "by_embedder": {"offline:words-and-stems-1": 0.25, "gemini:gemini-embedding-001": 0.6},
    "other": 0.5,
    "words": 0.3,
}
# From which cosine on two entries of MEMORY may say the same, so that whoever writes is asked.
SIMILAR_THRESHOLDS: dict[str, Any] = {
    "by_embedder": {"offline:words-and-stems-1": 0.55, "gemini:gemini-embedding-001": 0.85},
    "other": 0.85,
    "words": 0.6,
}

DOCUMENT_LIMIT_TOKENS = {"soul": 2_000, "bible": 8_000}
HEARTBEAT_LIMIT_TOKENS = 700  # what one site's numbers tell

# Sources of numbers. A test points them at a server on its own machine; nothing else may.
STRIPE_API_BASE = env.text("STRIPE_API_BASE", " ").strip()
HEARTBEAT_ALLOW_LOOPBACK = False
HEARTBEAT_REQUEST_SECONDS = 30.0  # one request, whole
HEARTBEAT_SOURCE_SECONDS = 600.0  # one source, all its pages
HEARTBEAT_RETRY_SECONDS = 1.0  # before a request is made again; doubled each time

TOOL_ROUNDS = 8  # how often a model may ask for tools before it must answer
TOOLS_AT_ONCE = 4  # of the calls of one round, how many run side by side
TOOL_CALLS_A_ROUND = 16
TOOL_RESULT_CHARACTERS = 20_000  # of a longer result the model reads the beginning
TOOL_ERROR_CHARACTERS = 50_000  # a refused edit carries the document it is to be made on
# Shares of the chat model's window, in our own count of tokens; providers count up to a third more.
COMPACT_ABOVE = 0.6  # a request above this has its older part summarised
REQUEST_UP_TO = 0.8  # a request above this is not sent; what is left is for the answer
COMPACT_AGAIN_AFTER_SECONDS = 120  # after a summary that failed, while requests fit without one
TURN_LEASE_SECONDS = 15
TURN_FLUSH_SECONDS = 2.0
MESSAGE_LIMIT_CHARACTERS = 100_000
IDLE_SECONDS = 2 * 60 * 60
LEAVING_GRACE_SECONDS = 10 * 60
WRAP_UP_WAIT_SECONDS = 5.0
WRAP_UP_LEASE_SECONDS = 20  # renewed while the model thinks; how long a killed worker blocks a job
WRAP_UP_BACKFILL_AFTER_SECONDS = 10 * 60
SUBSTANTIVE_TOKENS = 20
SEARCH_INDEX_AFTER_SECONDS = 0.3  # how long what was written waits for its place in the search index

# --- language, time, static files ------------------------------------------------------------------------

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = True
FORMAT_MODULE_PATH = "memberintel.formats"
USE_TZ = True
STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "staticfiles"
if EMBEDDED:  # files come straight from their sources; WhiteNoise only wants the folder to be there
    STATIC_ROOT.mkdir(parents=True, exist_ok=True)
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True

# --- security --------------------------------------------------------------------------------------------

SECURE_CSP = {
    "default-src": ["'self'"],
    "img-src": ["'self'", "data:"],
    "object-src": ["'none'"],
    "base-uri": ["'none'"],
    "frame-ancestors": ["'none'"],
    "form-action": ["'self'"],
}
# Under /admin/ alone: Alpine, which the desk's pages run on, evaluates text and sets styles.
DESK_CSP = SECURE_CSP | {
    "script-src": ["'self'", "'unsafe-eval'"],
    "style-src": ["'self'", "'unsafe-inline'"],
}
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = not EMBEDDED
SECURE_HSTS_SECONDS = 0 if EMBEDDED else 31_536_000
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = not EMBEDDED
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_FAILURE_VIEW = "memberintel.errors.stale_form"
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
REQUEST_LIMIT_BYTES = 8_000_000  # of any request, files and all; over it, nothing is read

# --- the support desk ------------------------------------------------------------------------------------

# What of a customer's content staff can open with a reason: see memberintel.privacy.openable.
OPENABLE: list[str] = [
    "brain.desk.soul",
    "brain.desk.bible",
    "brain.desk.memory_list",
    "brain.desk.memory",
    "brain.desk.heartbeat",
    "sessions.desk.session",
    "wrapups.desk.wrap_up",
    "wrapups.desk.journal_days",
    "memberintel.privacy.openable.request",
]
ACCESS_GRANT_SECONDS = 30 * 60  # how long one reason lets a member of staff look

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Support desk",
    "SITE_HEADER": "MemberIntel",
    "SITE_SUBHEADER": "Support desk",
    "SITE_URL": None,
    "SITE_ICON": lambda request: static("img/mark.svg"),
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("img/mark.svg")}
    ],
    "STYLES": [lambda request: static("css/desk.css")],
    "SHOW_VIEW_ON_SITE": False,
    "DASHBOARD_CALLBACK": "memberintel.dashboard.fill",
    "ACCOUNT": {
        "navigation": [
            {"title": "Change password", "link": reverse_lazy("account_change_password")},
            {"title": "Second factor", "link": reverse_lazy("mfa_index")},
        ]
    },
    "SIDEBAR": {"navigation": "memberintel.dashboard.navigation"},
    "COLORS": {
        "primary": {  # the product's green, from light to dark
            "50": "#eef7f4",
            "100": "#e1efe9",
            "200": "#bfe0d4",
            "300": "#94cfbc",
            "400": "#5fb39c",
            "500": "#2f917b",
            "600": "#0d5c4d",
            "700": "#0a483d",
            "800": "#083a31",
            "900": "#062d26",
            "950": "#031a16",
        }
    },
}

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"links": {"()": "memberintel.lib.discretion.HideLinks"}},
    "formatters": {
        "text": {"()": "memberintel.lib.discretion.PlacesOnly"},
        "json": {"()": "memberintel.lib.logs.as_json"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "filters": ["links"],
            # For people on one machine, for machines elsewhere.
            "formatter": env.one_of("LOG_FORMAT", ("text", "json"), "text" if EMBEDDED else "json"),
        }
    },
    "root": {"handlers": ["console"], "level": env.text("LOG_LEVEL", "WARNING")},
}
