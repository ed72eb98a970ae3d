"""The files and the command line of a node that is small: three of them share two processors with what is tested."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.cassandra.node import Options, Place

CLUSTER = "quelea"
KEYSTORE_PASSWORD = "quelea-test"

# What conf/jvm17-server.options of the distribution opens.
EXPORTS = """
    java.base/jdk.internal.misc java.base/jdk.internal.ref java.base/sun.nio.ch java.base/java.lang.ref
    java.management.rmi/com.sun.jmx.remote.internal.rmi java.rmi/sun.rmi.registry java.rmi/sun.rmi.server
    java.sql/java.sql jdk.attach/sun.tools.attach jdk.compiler/com.sun.tools.javac.file jdk.unsupported/sun.misc
""".split()
OPENS = """
    java.base/java.io java.base/java.lang java.base/java.lang.module java.base/java.lang.reflect java.base/java.nio
    java.base/java.util java.base/java.util.concurrent java.base/java.util.concurrent.atomic
    java.base/jdk.internal.loader java.base/jdk.internal.math java.base/jdk.internal.module
    java.base/jdk.internal.ref java.base/jdk.internal.reflect java.base/sun.nio.ch
    jdk.compiler/com.sun.tools.javac jdk.management/com.sun.management.internal
""".split()

YAML = """\
cluster_name: {cluster}
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
num_tokens: 4
allocate_tokens_for_local_replication_factor: 3
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: "{place.seed}:{place.storage_port}"
listen_address: {place.address}
storage_port: {place.storage_port}
rpc_address: {place.address}
native_transport_port: {place.cql_port}
start_native_transport: true

data_file_directories: [{place.directory}/data]
commitlog_directory: {place.directory}/commitlog
saved_caches_directory: {place.directory}/saved_caches
hints_directory: {place.directory}/hints
cdc_raw_directory: {place.directory}/cdc
disk_failure_policy: stop
auto_snapshot: false

{commitlog}
commitlog_segment_size: 8MiB
commitlog_total_space: 256MiB

memtable_heap_space: 64MiB
memtable_offheap_space: 64MiB
memtable_allocation_type: offheap_objects
memtable_flush_writers: 1
key_cache_size: 8MiB
file_cache_size: 32MiB
concurrent_reads: 16
concurrent_writes: 16
concurrent_compactors: 1
native_transport_max_threads: 32

# Two processors are shared by all nodes, their clients, and compilers.
read_request_timeout: 10s
write_request_timeout: 10s
range_request_timeout: 20s
request_timeout: 20s
cas_contention_timeout: 5s
# Linearizable reads, and a round trip fewer; never changed under data.
paxos_variant: v2
"""

COMMITLOG = {
    "periodic": "commitlog_sync: periodic\ncommitlog_sync_period: 1000ms",
    "batch": "commitlog_sync: batch",
    "group": "commitlog_sync: group\ncommitlog_sync_group_window: 10ms",
}

ACCOUNTS = """
authenticator: PasswordAuthenticator
authorizer: CassandraAuthorizer
role_manager: CassandraRoleManager
permissions_validity: 100ms
roles_validity: 100ms
"""

TLS = """
client_encryption_options:
  enabled: true
  optional: true
  keystore: {keystore}
  keystore_password: {password}
  require_client_auth: false
"""

LOGBACK = """\
<configuration>
  <appender name="FILE" class="ch.qos.logback.core.FileAppender">
    <file>{directory}/logs/system.log</file>
    <encoder><pattern>%-5level [%thread] %date{{ISO8601}} %F:%L - %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="FILE"/></root>
</configuration>
"""


def write(place: "Place", options: "Options") -> None:
    """Lays out the node's directory; data that is there stays."""
    for name in ("conf", "data", "commitlog", "saved_caches", "hints", "cdc", "logs"):
        (place.directory / name).mkdir(parents=True, exist_ok=True)
    yaml = YAML.format(cluster=CLUSTER, place=place, commitlog=COMMITLOG[options.commitlog_sync])
    if options.has_accounts:
        yaml += ACCOUNTS
    if options.keystore:
        yaml += TLS.format(keystore=options.keystore, password=KEYSTORE_PASSWORD)
    (place.directory / "conf" / "cassandra.yaml").write_text(yaml)
    (place.directory / "conf" / "logback.xml").write_text(LOGBACK.format(directory=place.directory))


def java_words(place: "Place", options: "Options", libraries: Path) -> list[str]:
    """The command line between `java` and the main class."""
    [agent] = libraries.glob("jamm-*.jar")
    directory = place.directory
    words = [f"-Xms{options.heap}", f"-Xmx{options.heap}", "-Xss512k", "-XX:+UseG1GC", "-XX:MaxDirectMemorySize=192M"]
    words += ["-XX:ActiveProcessorCount=2", f"-XX:TieredStopAtLevel={options.compiler_tiers}", "-XX:+ExitOnOutOfMemoryError"]
    words += [f"-javaagent:{agent}", "-Djava.net.preferIPv4Stack=true", "-Djdk.attach.allowAttachSelf=true"]
    words += ["-Dio.netty.tryReflectionSetAccessible=true"]
    for option, packages in (("--add-exports", EXPORTS), ("--add-opens", OPENS)):
        for package in packages:
            words += [option, f"{package}=ALL-UNNAMED"]
    settings = {
        "config": f"file://{directory}/conf/cassandra.yaml",
        "storagedir": directory,
        "logdir": f"{directory}/logs",
        "ring_delay_ms": 100 if options.is_alone else options.ring_delay_ms,
        "skip_wait_for_gossip_to_settle": 0 if options.is_alone else -1,
        "superuser_setup_delay_ms": 0,
        "foreground": "yes",
    }
    if not options.flushes_schema:
        settings |= {"unsafesystem": "true", "test.flush_local_schema_changes": "false"}
    words += [f"-Dcassandra.{name}={value}" for name, value in settings.items()]
    if options.clock_ahead_ms:
        words += ["-Dcassandra.clock=ShiftedClock", f"-Dquelea.clock_ahead_ms={options.clock_ahead_ms}"]
    words += [f"-Dlogback.configurationFile={directory}/conf/logback.xml", *options.java_options]
    return [*words, "-cp", f"{directory}/conf:{libraries}/*"]
