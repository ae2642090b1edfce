"""Django settings. Values come from environment variables through `lcm.config.environment`."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from lcm.config.data_folder import embedded_valkey_socket, load_or_create_secret_key
from lcm.config.database_url import database_settings
from lcm.config.environment import read_settings, reject_unsafe_settings, time_zone_from
from lcm.config.logs import logging_config
from lcm.config.mail_url import mail_settings

BASE_DIR = Path(__file__).resolve().parent.parent
CONFIG = read_settings()

DEBUG: bool = CONFIG["DEBUG"]
DATA_DIR: Path = (BASE_DIR / CONFIG["DATA_DIR"]).resolve()
SECRET_KEY: str = CONFIG["SECRET_KEY"] or (load_or_create_secret_key(DATA_DIR) if DEBUG else "")
reject_unsafe_settings(debug=DEBUG, demo=CONFIG["DEMO"], secret_key=SECRET_KEY)
ALLOWED_HOSTS: list[str] = CONFIG["ALLOWED_HOSTS"]
CSRF_TRUSTED_ORIGINS: list[str] = CONFIG["CSRF_TRUSTED_ORIGINS"]
DEMO: bool = CONFIG["DEMO"]

# --- apps, middleware, templates ----------------------------------------------------------------

INSTALLED_APPS = [
    "lcm",
    "scheduling",
    "fairshare",
    "observations",
    "lcm.admin.apps.LcmAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "template_partials",
    "heroicons",
]
MIDDLEWARE = [
    "lcm.web.server.middleware.RequestContextMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "lcm.web.server.middleware.DatabaseHealthMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "lcm.web.server.middleware.PreferencesMiddleware",
]
ROOT_URLCONF = "lcm.urls"
WSGI_APPLICATION = "lcm.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "lcm.web.context_processors.layout",
            ],
            "builtins": [
                "lcm.templatetags.lcm",
                "lcm.templatetags.resources",
                "observations.templatetags.observations",
                "template_partials.templatetags.partials",
                "django.templatetags.i18n",
            ],
        },
    }
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- database, broker, cache --------------------------------------------------------------------

DATABASES = {"default": database_settings(CONFIG["DATABASE_URL"], DATA_DIR, CONFIG["DATABASE_POOL_SIZE"])}

REDIS_EMBEDDED = not CONFIG["REDIS_URL"]
VALKEY_SOCKET = embedded_valkey_socket(DATA_DIR)
REDIS_URL: str = CONFIG["REDIS_URL"] or f"unix://{quote(str(VALKEY_SOCKET))}"
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "lcm",
        "OPTIONS": {"socket_timeout": 0.5, "socket_connect_timeout": 0.5},
    }
}

# --- people and security ------------------------------------------------------------------------

AUTH_USER_MODEL = "lcm.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"
CSRF_FAILURE_VIEW = "lcm.web.error_pages.csrf_failure"
SESSION_COOKIE_AGE = CONFIG["LOGIN_HOURS"] * 3600
PASSWORD_RESET_TIMEOUT = CONFIG["PASSWORD_LINK_HOURS"] * 3600
EMAIL = mail_settings(CONFIG["EMAIL_URL"])
EMAIL_BACKEND: str = EMAIL["EMAIL_BACKEND"]
EMAIL_HOST: str = EMAIL["EMAIL_HOST"]
EMAIL_PORT: int = EMAIL["EMAIL_PORT"]
EMAIL_HOST_USER: str = EMAIL["EMAIL_HOST_USER"]
EMAIL_HOST_PASSWORD: str = EMAIL["EMAIL_HOST_PASSWORD"]
EMAIL_USE_TLS: bool = EMAIL["EMAIL_USE_TLS"]
EMAIL_USE_SSL: bool = EMAIL["EMAIL_USE_SSL"]
EMAIL_FILE_PATH: str | None = EMAIL["EMAIL_FILE_PATH"]
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL: str = CONFIG["EMAIL_FROM"]
SESSION_COOKIE_NAME = "lcm_session"
CSRF_COOKIE_NAME = "lcm_csrf"
CSRF_COOKIE_HTTPONLY = True
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
HTTPS: bool = CONFIG["HTTPS"]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)$"]
if HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_HSTS_SECONDS = 365 * 24 * 3600
    SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = True
METRICS_TOKEN: str = CONFIG["METRICS_TOKEN"]
DATA_UPLOAD_MAX_MEMORY_SIZE = 5 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 2000

# --- pages ----------------------------------------------------------------------------------------

LANGUAGE_CODE = "en"
USE_TZ = True
TIME_ZONE: str = time_zone_from(CONFIG["TIME_ZONE"])
USE_I18N = True
# To add a language: `manage.py makemessages -l de`, translate lcm/locale/de, then add it here.
LANGUAGES = [("en", "English")]
LOCALE_PATHS = [BASE_DIR / "lcm" / "locale"]
USE_THOUSAND_SEPARATOR = False
STATIC_URL = "static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "lcm.web.server.stylesheet.StyleSheetFinder",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "lcm.web.server.static_files.VersionedStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = DEBUG
# With DEBUG, URLs of static files change with the file.
WHITENOISE_MAX_AGE = 3600 if DEBUG else 60

# --- API --------------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "lcm.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["lcm.api.permissions.AccessPermission"],
    "DEFAULT_THROTTLE_CLASSES": ["lcm.api.throttling.PrincipalThrottle"],
    "DEFAULT_PAGINATION_CLASS": "lcm.api.pagination.KeysetPagination",
    "DEFAULT_FILTER_BACKENDS": ["lcm.api.filters.SharedFilterBackend"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["lcm.api.parsers.JsonParser"],
    "DEFAULT_SCHEMA_CLASS": "lcm.api.schema.LcmSchema",
    "EXCEPTION_HANDLER": "lcm.api.errors.exception_handler",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "LCM API",
    "DESCRIPTION": "Lab Cloud Manager: definitions, sessions and capacity.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["lcm.api.permissions.AccessPermission"],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/",
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "lcm.api.schema.add_error_responses",
        "lcm.api.schema.allow_empty_parameters",
        "lcm.api.schema.close_request_bodies",
    ],
    "ENUM_NAME_OVERRIDES": {
        "SessionStatusEnum": "lcm.models.sessions.STATUS_CHOICES",
        "DefinitionStatusEnum": "lcm.models.definitions.DefinitionStatus",
        "KernelStatusEnum": "lcm.models.sessions.KernelStatus",
        "DriftKindEnum": "observations.models.drift.KIND_CHOICES",
        "FeedKindEnum": "lcm.models.feed.FeedKind",
        "TokenKindEnum": "lcm.models.records.TokenKind",
        "PoolStateEnum": "scheduling.selectors.pools.POOL_STATES",
        "AttemptOutcomeEnum": "scheduling.models.slots.AttemptOutcome",
        "DecisionOutcomeEnum": "scheduling.models.decisions.DecisionOutcome",
        "SlotStateEnum": "scheduling.models.slots.SlotState",
        "ObserverKindEnum": "scheduling.models.observer_runs.RunKind",
        "ObserverStateEnum": "scheduling.selectors.observers.STATES",
        "LiveStateEnum": "observations.api.live_serializers.STATES",
        "JobStateEnum": "lcm.models.jobs.JobState",
        "SeverityEnum": ["info", "warning", "critical"],
        "DeliveryStateEnum": "lcm.models.events.DeliveryState",
        "ChannelEnum": "lcm.models.events.Channel",
        "DeliveryCauseEnum": "lcm.models.events.Cause",
        "WebhookStateEnum": "lcm.web.delivery_filters.WEBHOOK_STATES",
        "TokenStateEnum": ["valid", "expired", "revoked"],
        "RevisionBasisEnum": "lcm.models.definitions.RevisionBasis",
        "SourceEnum": ["used", "allocated"],
    },
}

# --- background work ----------------------------------------------------------------------------------

CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://", 1)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# None: retry until the broker is back.
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 3600, "global_keyprefix": "lcm:"}
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_CONSUMER = "lcm.celery:ReconnectingConsumer"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CONCURRENCY = CONFIG["WORKER_CONCURRENCY"]
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TASK_TIME_LIMIT = 600
CELERY_TIMEZONE = "UTC"
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True

LOGGING = logging_config(style=CONFIG["LOG_FORMAT"], level=CONFIG["LOG_LEVEL"])
