"""The options of Kafka in an experiment file. It never contains secrets, only the places where they are."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    StrictBool,
    StrictStr,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from streamgauge.model.options import Count, Duration, Options, Size
from streamgauge.model.units import SECOND
from streamgauge.transports.kafka.client.producer import Acks, Compression, ProducerKind, ProducerSettings
from streamgauge.transports.kafka.cluster import Cluster, Mechanism, Security, missing_setting
from streamgauge.transports.kafka.formats.columns import FormatName

MAX_BROKERS = 5
"""Local brokers: as many as any experiment of the papers needs."""


def _variable_name(text: str) -> str:
    if not text.replace("_", "a").isalnum() or not text.isascii() or text[0].isdigit():
        raise ValueError("must be the name of an environment variable")
    return text


class SecretFrom(Options):
    """Where a secret is: in an environment variable, or in a file."""

    env: Annotated[StrictStr, Field(min_length=1), AfterValidator(_variable_name)] | None = Field(
        default=None, description="the environment variable that contains it"
    )
    file: Annotated[StrictStr, Field(min_length=1)] | None = Field(
        default=None, description="a file that contains it in one line, and nothing else"
    )

    @model_validator(mode="after")
    def _one(self) -> "SecretFrom":
        if (self.env is None) == (self.file is None):
            raise ValueError("must be either {env: NAME} or {file: path}")
        return self


def _no_secret(value: object) -> object:
    """Reject a value in the file itself, which may be the secret, without repeating it."""
    if value is not None and not isinstance(value, dict | SecretFrom):
        raise ValueError("a password is not allowed in the experiment file; use {env: NAME} or {file: path}")
    return value


Secret = Annotated[SecretFrom | None, BeforeValidator(_no_secret)]
FetchSecret = Callable[[SecretFrom], SecretStr]
"""Fetches a secret from the place where it is."""


class ClusterOptions(Options):
    """An external cluster."""

    bootstrap: StrictStr = Field(
        min_length=3, max_length=4000, description="host:port of a broker; separate several with commas"
    )
    tls: StrictBool = Field(default=False, description="encrypt connections")
    authority: StrictStr | None = Field(
        default=None,
        description="PEM file with the certificates that sign those of the cluster; omitted = those that the system "
        "trusts",
    )
    certificate: StrictStr | None = Field(default=None, description="PEM file with the client's certificate")
    key: StrictStr | None = Field(default=None, description="PEM file with the client's key")
    key_password: Secret = Field(default=None, description="where to read the password of the key")
    check_host: StrictBool = Field(
        default=True, description="require that the certificate of a broker contains its host name"
    )
    mechanism: Mechanism | None = Field(
        default=None, description="how clients log in (SASL): PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"
    )
    user: StrictStr = Field(default="", description="user name")
    password: Secret = Field(default=None, description="where to read the password of the user")

    @model_validator(mode="after")
    def _consistent(self) -> "ClusterOptions":
        missing = missing_setting(self.mechanism, (self.user, self.password), (self.certificate, self.key))
        if missing is not None:
            raise _combination(*missing)
        if not self.mechanism and (self.user or self.password):
            raise _combination("user", "user and password need mechanism, for example SCRAM-SHA-512")
        if not self.tls and (self.authority or self.certificate):
            raise _combination("tls", "authority and certificate need tls: true")
        if "@" in self.bootstrap:  # it may be a password, so it is not repeated
            raise _combination(
                "bootstrap", "must be host:port, without a user or a password; set the keys user and password instead"
            )
        for address in self.bootstrap.split(","):
            host, _, port = address.strip().rpartition(":")
            if not host or not port.isdigit():
                raise _combination("bootstrap", f"{address.strip()!r} is not the address of a broker; write host:port")
        return self

    @property
    def plaintext(self) -> bool:
        """Whether connections use neither TLS nor SASL."""
        return not self.tls and self.mechanism is None

    def open(self, fetch_secret: FetchSecret) -> Cluster:
        """The cluster, with its secrets."""
        if self.plaintext:
            return Cluster(self.bootstrap)
        security = Security(
            tls=self.tls,
            authority=_path(self.authority),
            certificate=_path(self.certificate),
            key=_path(self.key),
            key_password=fetch_secret(self.key_password) if self.key_password else None,
            check_host=self.check_host,
            mechanism=self.mechanism,
            user=self.user,
            password=fetch_secret(self.password) if self.password else None,
        )
        return Cluster(self.bootstrap, security)


def _path(text: str | None) -> Path | None:
    """The absolute path of a file: child processes have other working folders."""
    return Path(text).expanduser().absolute() if text else None


def _combination(key: str, sentence: str) -> PydanticCustomError:
    """An error about a combination of keys, reported at one of them."""
    return PydanticCustomError("combination", "{sentence}", {"key": key, "sentence": sentence})


class KafkaOptions(Options):
    """Kafka topics between load generator and system under test, and for its outputs."""

    format: FormatName = Field(
        default="binary",
        description="format of events and outputs in records: binary (packed decimals), json, or avro (plain datum)",
    )
    brokers: Count = Field(
        default=1,
        ge=1,
        le=MAX_BROKERS,
        description="number of local brokers, which run on the cores of the load driver",
    )
    replication: Count = Field(default=1, ge=1, le=MAX_BROKERS, description="copies of every partition")
    producer: Literal["auto", "vectorised", "confluent"] = Field(
        default="auto",
        description="vectorised = whole batches over a plain connection, confluent = librdkafka, auto = vectorised "
        "if there is no TLS, login or compression",
    )
    acks: Annotated[
        Acks,
        BeforeValidator(lambda value: str(value) if isinstance(value, int) else value),
        WithJsonSchema({"enum": [*get_args(Acks), 0, 1]}),
    ] = Field(default="all", description="which brokers confirm a record: 0, 1 or all")
    linger: Duration = Field(default=0, ge=0, le=SECOND, description="how long events may wait for more events")
    batch: Size = Field(default=1_000_000, ge=1_000, le=16_000_000, description="largest size of a record batch")
    compression: Compression = Field(
        default="none", description="compression of record batches: none, gzip, snappy, lz4 or zstd"
    )
    commit_group: StrictBool = Field(
        default=False,
        description="also commit positions to a consumer group, so that monitoring tools for Kafka show the lag",
    )
    cluster: ClusterOptions | None = Field(default=None, description="an external cluster; omitted = local brokers")

    @model_validator(mode="after")
    def _possible(self) -> "KafkaOptions":
        if self.cluster is None and self.replication > self.brokers:
            raise _combination(
                "replication",
                f"{self.replication} copies need at least {self.replication} brokers, but brokers is {self.brokers}",
            )
        if self.cluster is not None and self.brokers != 1:
            raise _combination(
                "brokers", "local brokers cannot be combined with an external cluster; remove brokers or cluster"
            )
        if self.producer == "vectorised" and not self._plain:
            raise _combination(
                "producer",
                "the producer vectorised supports neither TLS nor SASL nor compression; use confluent or auto",
            )
        return self

    @property
    def _plain(self) -> bool:
        return self.compression == "none" and (self.cluster is None or self.cluster.plaintext)

    @property
    def requested_producer(self) -> ProducerKind | None:
        """The producer that is named; None: the one that suits the cluster."""
        return None if self.producer == "auto" else self.producer

    @property
    def producer_used(self) -> ProducerKind:
        """The producer that sends."""
        return self.requested_producer or ("vectorised" if self._plain else "confluent")

    @property
    def producer_settings(self) -> ProducerSettings:
        """How the generator sends."""
        return ProducerSettings(self.acks, self.linger, self.batch, compression=self.compression)

    def to_json(self) -> dict[str, Any]:
        """As it stands in documents, and as it is read again."""
        return self.model_dump(mode="json")
