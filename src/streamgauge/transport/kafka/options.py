"""What an experiment may say of Kafka. Secrets never stand in it, only where they are found."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    StrictBool,
    StrictStr,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from streamgauge.model.transport import TransportChoice
from streamgauge.model.types import Count, Duration, Size
from streamgauge.model.units import SECOND
from streamgauge.transport.kafka.cluster import Cluster, Mechanism, Security
from streamgauge.transport.kafka.columns import FormatName
from streamgauge.transport.kafka.producer import Acks, Compression, Kind, Sending

MOST_BROKERS = 5
"""Brokers on one machine: as many as any experiment of the papers needs."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _a_name(text: str) -> str:
    if not text.replace("_", "a").isalnum() or not text.isascii() or text[0].isdigit():
        raise ValueError("must be the name of a variable of the environment")
    return text


class SecretFrom(_Strict):
    """Where a secret is found: in a variable of the environment, or in a file."""

    env: Annotated[StrictStr, Field(min_length=1), AfterValidator(_a_name)] | None = Field(
        default=None, description="the variable of the environment that holds it"
    )
    file: Annotated[StrictStr, Field(min_length=1)] | None = Field(
        default=None, description="the file that holds it, and nothing else"
    )

    @model_validator(mode="after")
    def _one(self) -> "SecretFrom":
        if (self.env is None) == (self.file is None):
            raise ValueError("a secret has one place: {env: NAME} or {file: path}")
        return self


def _no_secret(said: object) -> object:
    """What stands in the file itself may be the secret: it is refused, and not repeated."""
    if said is not None and not isinstance(said, dict | SecretFrom):
        raise ValueError("a secret does not stand in the file: say {env: NAME} or {file: path}")
    return said


Secret = Annotated[SecretFrom | None, BeforeValidator(_no_secret)]
Reveal = Callable[[SecretFrom], SecretStr]
"""Fetches a secret from where it is."""


class ClusterOptions(_Strict):
    """A cluster that the user has."""

    bootstrap: StrictStr = Field(
        min_length=3, max_length=4000, description="host:port of a broker, more of them after commas"
    )
    tls: StrictBool = Field(default=False, description="whether connections are encrypted")
    authority: StrictStr | None = Field(default=None, description="PEM file that signs the cluster's certificate")
    certificate: StrictStr | None = Field(default=None, description="PEM file with the client's certificate")
    key: StrictStr | None = Field(default=None, description="PEM file with the client's key")
    key_password: Secret = Field(default=None, description="where the password of the key is")
    check_host: StrictBool = Field(default=True, description="whether a certificate must name the host")
    mechanism: Mechanism | None = Field(default=None, description="how clients log in (SASL)")
    user: StrictStr = Field(default="", description="who logs in")
    password: Secret = Field(default=None, description="where the password is")

    @model_validator(mode="after")
    def _whole(self) -> "ClusterOptions":
        if self.mechanism and not (self.user and self.password):
            raise _combination("mechanism", f"{self.mechanism} wants a user and a password")
        if not self.mechanism and (self.user or self.password):
            raise _combination("user", "a user and a password want a mechanism, such as SCRAM-SHA-512")
        if (self.certificate is None) != (self.key is None):
            raise _combination("certificate", "a client's certificate and its key come together")
        if not self.tls and (self.authority or self.certificate):
            raise _combination("tls", "certificates want tls: true")
        if "@" in self.bootstrap:  # it may be a password, so it is not repeated
            raise _combination("bootstrap", "no user and no password stand here: it is host:port, and user is a key")
        for address in self.bootstrap.split(","):
            host, _, port = address.strip().rpartition(":")
            if not host or not port.isdigit():
                raise _combination("bootstrap", f"{address.strip()!r} is no address of a broker: it is host:port")
        return self

    @property
    def plain(self) -> bool:
        """Whether a bare connection will do."""
        return not self.tls and self.mechanism is None

    def open(self, reveal: Reveal) -> Cluster:
        """The cluster, with its secrets."""
        if self.plain:
            return Cluster(self.bootstrap)
        security = Security(
            tls=self.tls,
            authority=_path(self.authority),
            certificate=_path(self.certificate),
            key=_path(self.key),
            key_password=reveal(self.key_password) if self.key_password else None,
            check_host=self.check_host,
            mechanism=self.mechanism,
            user=self.user,
            password=reveal(self.password) if self.password else None,
        )
        return Cluster(self.bootstrap, security)


def _path(text: str | None) -> Path | None:
    """The whole path of a file: processes that are started have other working folders."""
    return Path(text).expanduser().absolute() if text else None


def _combination(key: str, sentence: str) -> PydanticCustomError:
    """What only the whole shows, put to one key of it."""
    return PydanticCustomError("combination", "{sentence}", {"key": key, "sentence": sentence})


class KafkaOptions(_Strict):
    """A real Kafka between generator and system under test, and for its output."""

    format: FormatName = Field(default="binary", description="how events and outputs are written into records")
    brokers: Count = Field(default=1, ge=1, le=MOST_BROKERS, description="brokers of ours, on the driver's cores")
    replication: Count = Field(default=1, ge=1, le=MOST_BROKERS, description="copies of every partition")
    producer: Literal["auto", "vectorised", "confluent"] = Field(
        default="auto", description="what sends; auto: vectorised where the cluster allows it"
    )
    acks: Annotated[
        Acks,
        BeforeValidator(lambda said: str(said) if isinstance(said, int) else said),
        WithJsonSchema({"enum": [*get_args(Acks), 0, 1]}),
    ] = Field(default="all", description="which brokers confirm a record")
    linger: Duration = Field(default=0, ge=0, le=SECOND, description="how long events wait for more of them")
    batch: Size = Field(default=1_000_000, ge=1_000, le=16_000_000, description="bytes of a batch at most")
    compression: Compression = Field(default="none", description="of record batches")
    commit_group: StrictBool = Field(
        default=False, description="whether positions are also committed to a consumer group"
    )
    cluster: ClusterOptions | None = Field(default=None, description="a cluster that you have; else brokers of ours")

    @model_validator(mode="after")
    def _possible(self) -> "KafkaOptions":
        if self.cluster is None and self.replication > self.brokers:
            raise _combination(
                "replication", f"{self.replication} copies need as many brokers; there are {self.brokers}"
            )
        if self.cluster is not None and self.brokers != 1:
            raise _combination("brokers", "brokers of ours are not started beside a cluster that you have: remove one")
        if self.producer == "vectorised" and not self._bare:
            said = "the producer vectorised has neither TLS nor SASL nor compression: use confluent or auto"
            raise _combination("producer", said)
        return self

    @property
    def _bare(self) -> bool:
        return self.compression == "none" and (self.cluster is None or self.cluster.plain)

    @property
    def kind(self) -> Kind | None:
        """The producer that is named; None: the one that suits the cluster."""
        return None if self.producer == "auto" else self.producer

    @property
    def chosen(self) -> Kind:
        """The producer that sends."""
        return self.kind or ("vectorised" if self._bare else "confluent")

    @property
    def sending(self) -> Sending:
        """How the generator sends."""
        return Sending(self.acks, self.linger, self.batch, compression=self.compression)

    def dumped(self) -> dict[str, Any]:
        """As it stands in documents, and as it is read again."""
        return self.model_dump(mode="json")


def kafka_options(choice: TransportChoice) -> KafkaOptions | None:
    """The options of a trial or an experiment on Kafka; None: it is on the queue."""
    if choice.name != "kafka":
        return None
    cluster = choice.options.get("cluster")
    known = ClusterOptions.model_validate(cluster) if cluster else None
    return KafkaOptions.model_construct(**{**choice.options, "cluster": known})
