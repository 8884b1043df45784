"""The page for those who come from Hazelcast Jet has Jet's names, and names only what is there."""

from __future__ import annotations

import builtins
import concurrent.futures
import inspect
import re
from pathlib import Path

import pytest

import collectors
import dstream as ds
import dstream.core
import dstream.errors
import dstream.testing
import dstream.windows
import reducers
import sources
from dstream import Context, JobConfig, JoinClause, Pipeline, Service
from dstream.core import processors
from dstream.jobs import Job
from dstream.pipeline import BatchStage, KeyedStage, StreamStage, WindowedStage
from dstream.spi import AggregateOperation
from dstream.spi.epochs import WatermarkPolicy

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "".join((DOCS / name).read_text() for name in ("coming-from-jet.md", "coming-from-jet-streams.md"))
LIBRARY = (DOCS / "reference" / "processors.md").read_text()


def rows_of(page):
    """Return the cells of each row of the tables of a page."""
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


ROWS = rows_of(PAGE)
ROLES = {
    "AppendableTraverser": dstream.core.AppendableTraverser,
    "FlatMapper": dstream.core.FlatMapper,
    "ProcessorMetaSupplier": dstream.core.ProcessorMetaSupplier,
    "ProcessorSupplier": dstream.core.ProcessorSupplier,
    "ResettableSingletonTraverser": dstream.core.ResettableSingletonTraverser,
    "Edge": dstream.core.Edge,
    "JoinClause": JoinClause,
    "clause": JoinClause,
    "config": JobConfig,
    "context": dstream.core.ProcessorContext,
    "ctx": Context,
    "dag": dstream.core.DAG,
    "edge": dstream.core.Edge,
    "endless": StreamStage,
    "inbox": dstream.core.Inbox,
    "job": Job,
    "keyed": KeyedStage,
    "map": ds.IStreamMap,
    "numbers": ds.IntStream,
    "op": AggregateOperation,
    "outbox": dstream.core.Outbox,
    "pipeline": Pipeline,
    "policy": WatermarkPolicy,
    "processors": processors,
    "processor": dstream.core.AbstractProcessor,
    "service": Service,
    "stage": BatchStage,
    "stream": ds.Stream,
    "traverser": dstream.core.Traverser,
    "verified": dstream.testing.VerifiedProcessor,
    "vertex": dstream.core.Vertex,
    "window": dstream.windows.FrameWindow,
    "windowed": WindowedStage,
}
"""What the names stand for that the page writes before a dot."""

HOMES = [ds, ds.errors, ds.spi, collectors, reducers, sources, dstream.core, dstream.testing, dstream.windows]
"""Where names without a dot are."""

CODE = re.compile(r"`([^`]+)`")
CLASS = re.compile(r"[A-Z]\w*[a-z]")
NAMED = re.compile(r"^(?:(\w+)\.)?(\w+)(\(.*\))?$")


def named_here(cells):
    """Return the pairs (role, name) of the code in these cells: `stage.map(fn)` is (stage, map).

    A word alone is a name if it begins as a class does.
    """
    found = [NAMED.match(code) for cell in cells for code in CODE.findall(cell)]
    return {
        (match[1], match[2])
        for match in found
        if match is not None and (match[1] in ROLES or match[3] or CLASS.match(match[2]))
    }


OURS = sorted(named_here(row[1] for row in ROWS if len(row) == 3), key=str)


def test_docs_jet_page_has_tables():
    """Names are really found, so that the next test cannot pass for lack of cases."""
    assert {("stage", "hash_join"), ("job", "join"), (None, "to_bags"), ("config", "guarantee")} <= set(OURS)


@pytest.mark.parametrize(("role", "name"), OURS)
def test_docs_jet_page_names_what_exists(role, name):
    """Each name in a second column is a member of what stands before its dot, or a public name of a package."""
    if role is None:
        of_python = (builtins, concurrent.futures, ds.Stream, JoinClause)
        assert any(name in home.__all__ for home in HOMES) or any(hasattr(each, name) for each in of_python)
    else:
        members = {*dir(ROLES[role]), *inspect.get_annotations(ROLES[role])}
        assert name in members


def test_docs_library_page_names_what_exists():
    """Each name in the second column of the page of processors is one of theirs, or a policy of windows."""
    there = {*processors.__all__, *dstream.windows.__all__, *collectors.__all__}
    named = {code.partition("(")[0] for row in rows_of(LIBRARY) for code in CODE.findall(row[1])}

    assert named - {"here"} - there == set()
    assert set(processors.__all__) - named == set()


JET = {
    "Processors": """
        aggregateP accumulateP combineP aggregateByKeyP accumulateByKeyP combineByKeyP aggregateToSlidingWindowP
        accumulateByFrameP combineToSlidingWindowP aggregateToSessionWindowP insertWatermarksP mapP filterP flatMapP
        mapUsingContextP filterUsingContextP flatMapUsingContextP noopP nonCooperativeP mapStatefulP flatMapStatefulP
        mapUsingServiceP mapUsingServiceAsyncP filterUsingServiceP flatMapUsingServiceP sortP coAggregateByKeyP
        coAccumulateByKeyP coAccumulateByFrameP coAggregateToSlidingWindowP
    """,
    "SourceProcessors": """
        readMapP streamMapP readRemoteMapP streamRemoteMapP readCacheP streamCacheP readRemoteCacheP streamRemoteCacheP
        readListP readRemoteListP streamSocketP readFilesP streamFilesP streamKafkaP readHdfsP
    """,
    "SinkProcessors": """
        writeMapP writeRemoteMapP mergeMapP mergeRemoteMapP updateMapP updateRemoteMapP writeCacheP writeRemoteCacheP
        writeListP writeRemoteListP writeSocketP writeFileP writeBufferedP writeKafkaP writeHdfsP
    """,
    "DiagnosticProcessors": "writeLoggerP peekInputP peekOutputP peekSnapshotP",
    "graph": """
        Vertex getName getMetaSupplier getLocalParallelism checkLocalParallelism getSource getSourceName
        getSourceOrdinal getDestination getDestName getDestOrdinal getPriority isDistributed getRoutingPolicy getConfig
        Partitioner HASH_CODE UNICAST ISOLATED PARTITIONED BROADCAST ordered distributeTo fanout
    """,
    "suppliers": """
        ProcessorSupplier ProcessorMetaSupplier preferredLocalParallelism preferLocalParallelismOne isCooperative
        memberCount memberIndex
    """,
    "Context": """
        getLogger getOutbox logger vertexName globalProcessorIndex totalParallelism localParallelism
        processingGuarantee snapshottingEnabled jetInstance FlatMapper Watermark BroadcastKey broadcastKey
    """,
    "Traverser": """
        next map filter flatMap takeWhile dropWhile append prepend peek onFirstNull over empty traverseIterator
        traverseSpliterator traverseEnumeration traverseStream traverseIterable traverseArray lazy isEmpty
        ResettableSingletonTraverser accept
    """,
    "event time": """
        WatermarkPolicy reportEvent getCurrentWatermark WatermarkEmissionPolicy throttleWm noThrottling emitByMinStep
        emitByFrame WatermarkGenerationParams wmGenParams noWatermarks withEmitPolicy DEFAULT_IDLE_TIMEOUT
        WatermarkSourceUtil handleEvent handleNoEvent increasePartitionCount getWatermark restoreWatermark
        SlidingWindowPolicy slidingWinPolicy tumblingWinPolicy frameSize frameOffset windowSize isTumbling floorFrameTs
        higherFrameTs withOffset toTumblingByFrame TimestampKind EVENT FRAME
    """,
    "TestSupport": """
        supplierFrom listToString TestInbox TestOutbox snapshotQueue drainQueueAndReset drainQueuesAndReset
        drainSnapshotQueueAndReset reset TestProcessorContext TestProcessorSupplierContext
        TestProcessorMetaSupplierContext JetAssert
    """,
    "builders": """
        AggregateBuilder GroupAggregateBuilder WindowAggregateBuilder WindowGroupAggregateBuilder HashJoinBuilder
        StreamHashJoinBuilder AllOfAggregationBuilder SinkBuilder tag0 add build groupBy coGroup coGroupBuilder
        StageWithGrouping StageWithWindow StreamStageWithGrouping StageWithGroupingAndWindow SlidingWindowDef
        SessionWindowDef kind downcast watermarkFrameSize toSlidingWindowPolicy slideBy sessionTimeout
        AggregateOperation1 AggregateOperation2 AggregateOperation3
    """,
    "SourceBuilder": """
        SourceBuilder batch stream timestampedStream fillBufferFn distributed destroyFn createSnapshotFn
        restoreSnapshotFn JournalInitialPosition START_FROM_OLDEST START_FROM_CURRENT generate_series generate_stream
    """,
    "GenericPredicates": """
        alwaysTrue alwaysFalse instanceOf and not or notEqual equal like ilike regex greaterThan greaterEqual lessThan
        lessEqual between in
    """,
    "JobStatus": """
        NOT_STARTED NOT_RUNNING STARTING RUNNING RESTARTING SUSPENDED SUSPENDED_EXPORTING_SNAPSHOT COMPLETING FAILED
        COMPLETED NONE AT_LEAST_ONCE EXACTLY_ONCE
    """,
    "JobStateSnapshot": "name creationTime jobId jobName payloadSize dagJsonString destroy",
    "Observable": "addObserver removeObserver configureCapacity getConfiguredCapacity toFuture Observable",
    "core": """
        newVertex getVertex getInboundEdges getOutboundEdges localParallelism updateMetaSupplier between priority
        partitioned allToOne broadcast isolated distributed setConfig tryProcess tryProcess0 tryProcess4
        tryProcessWatermark completeEdge complete saveToSnapshot restoreFromSnapshot finishSnapshotRestore close tryEmit
        emitFromTraverser tryEmitToSnapshot emitFromTraverserToSnapshot flatMapper setCooperative peek poll remove
        drainTo drain offer offerToSnapshot bucketCount forceTotalParallelismOne onFirstNull traverseIterable lazy
        AppendableTraverser verifyProcessor expectOutput expectOutputs outputChecker cooperativeTimeout disableSnapshots
        disableProgressAssertion disableCompleteCall disableRunUntilCompleted disableLogging SAME_ITEMS_ANY_ORDER
    """,
    "DistributedStream": """
        fromMap fromList fromCache fromSource filter map flatMap mapToInt mapToLong mapToDouble flatMapToInt
        flatMapToLong flatMapToDouble distinct sorted peek limit skip reduce collect min max count anyMatch allMatch
        noneMatch findFirst findAny forEach forEachOrdered toArray iterator isParallel parallel sequential onClose close
        spliterator unordered configure IMapJet IListJet ICacheJet IStreamMap IStreamList IStreamCache parallelStream
        mapToObj boxed asLongStream asDoubleStream sum average summaryStatistics DistributedComparator naturalOrder
        comparing thenComparing reversed nullsFirst nullsLast DistributedOptional DistributedIntSummaryStatistics
    """,
    "DistributedCollectors": """
        toCollection toList toSet joining mapping collectingAndThen counting minBy maxBy summingInt summingLong
        summingDouble averagingInt averagingLong averagingDouble summarizingInt summarizingLong summarizingDouble
        reducing groupingBy partitioningBy toMap aggregating toIMap toICache toIList groupingByToIMap
        groupingByToICache Reducer
    """,
    "types": "JetInstance Stage GeneralStage BatchStage SinkStage StreamStage BatchSource StreamSource Source Sink",
    "connectors": """
        map list cache remoteMap remoteList remoteCache mapJournal cacheJournal remoteMapJournal remoteCacheJournal
        socket files fileWatcher jsonWatcher json filesBuilder jdbc jmsQueue jmsTopic batchFromProcessor
        streamFromProcessor streamFromProcessorWithWatermarks fromProcessor mapWithMerging mapWithUpdating
        mapWithEntryProcessor logger noop kafka hdfs mapPutEvents cachePutEvents mapEventToEntry mapEventNewValue
        cacheEventToEntry MySqlCdcSources PostgresCdcSources DebeziumCdcSources CdcSinks ChangeRecord reliableTopic
    """,
    "JetConfig": """
        JetConfig loadDefault loadFromClasspath loadFromStream InstanceConfig cooperativeThreadCount flowControlPeriodMs
        backupCount tempDir EdgeConfig queueSize receiveWindowMultiplier packetSizeLimit getProperties hazelcastConfig
        instanceConfig defaultEdgeConfig ResourceConfig getUrl isArchive
    """,
    "exceptions": """
        JetException JobNotFoundException TopologyChangedException JobRestartRequestedException CancellationException
    """,
    "metrics": """
        executionStartTime executionCompletionTime snapshotBytes snapshotKeys emittedCount receivedCount receivedBatches
        queuesSize queuesCapacity topObservedWm coalescedWm lastForwardedWm lateEventsDropped totalWindows totalFrames
        totalKeysInFrames
    """,
    "Pipeline": "create drawFrom drainTo toDag readFrom writeTo toDotString isEmpty setPreserveOrder",
    "GeneralStage": """
        getPipeline name setName setLocalParallelism map filter flatMap mapUsingContext filterUsingContext
        flatMapUsingContext mapUsingService filterUsingService flatMapUsingService mapUsingServiceAsync
        mapUsingServiceAsyncBatched mapUsingContextAsync mapUsingIMap mapUsingReplicatedMap mapUsingPython hashJoin
        hashJoin2 hashJoinBuilder innerHashJoin innerHashJoin2 groupingKey rollingAggregate mapStateful filterStateful
        flatMapStateful addTimestamps merge rebalance peek customTransform apply drainTo writeTo
    """,
    "BatchStage": "aggregate aggregate2 aggregate3 aggregateBuilder distinct sort",
    "StageWithGrouping": "keyFn aggregate aggregate2 aggregate3 aggregateBuilder distinct rollingAggregate",
    "StreamStage": """
        window windowDefinition streamStage tumbling sliding session WindowDefinition WindowResultFunction
        KeyedWindowResultFunction WindowResult KeyedWindowResult TimestampedItem TimestampedEntry setEarlyResultsPeriod
        withoutTimestamps withIngestionTimestamps withNativeTimestamps withTimestamps EventTimePolicy
        WatermarkPolicies limitingLag limitingLagAndDelay limitingTimestampAndWallClockLag limitingLagAndLull
    """,
    "JoinClause": "onKeys joinMapEntries projecting leftKeyFn rightKeyFn rightProjectFn",
    "ContextFactory": """
        withCreateFn withDestroyFn nonCooperative shareLocally createFn destroyFn isCooperative isSharedLocally
        iMapContext replicatedMapContext sharedService nonSharedService iMapService replicatedMapService
    """,
    "SinkBuilder": "builder onReceiveFn flushFn destroyFn build",
    "AggregateOperations": """
        counting summingLong summingDouble minBy maxBy averagingLong averagingDouble linearTrend allOf allOfBuilder
        concatenating mapping toCollection toList toSet toMap toTwoBags toThreeBags toBagsByTag groupingBy reducing
        topN bottomN filtering flatMapping pickAny sorting aggregateOperation2 aggregateOperation3
        coAggregateOperationBuilder toCollector toAggregator
    """,
    "AggregateOperation": """
        arity createFn accumulateFn accumulateFn0 accumulateFn1 accumulateFn2 combineFn deductFn finishFn
        withAccumulateFn withAccumulateFns withAccumulateFn0 withAccumulateFn1 withAccumulateFn2 withFinishFn
        withCombiningAccumulateFn withCreate andAccumulate andAccumulate0 andAccumulate1 andAccumulate2 andCombine
        andDeduct andFinish andIdentityFinish
    """,
    "accumulator": """
        LongAccumulator DoubleAccumulator LongLongAccumulator LongDoubleAccumulator LinTrendAccumulator MutableReference
    """,
    "datamodel": "Tag Tuple2 Tuple3 Tuple4 Tuple5 TwoBags ThreeBags BagsByTag ItemsByTag",
    "DistributedFunctions": "wholeItem entryKey entryValue constantKey noopConsumer alwaysTrue alwaysFalse",
    "Job": """
        getId getIdString getName getConfig getSubmissionTime getStatus getSuspensionCause getMetrics getFuture join
        restart suspend resume cancel cancelAndExportSnapshot exportSnapshot JobStatus JobStateSnapshot
    """,
    "JetInstance": """
        newJob newJobIfAbsent getJobs getJob getMap getList getCacheManager shutdown getJobStateSnapshot
        getJobStateSnapshots getSql getReplicatedMap getReliableTopic Observable
    """,
    "JobConfig": """
        setName setProcessingGuarantee setSnapshotIntervalMillis setAutoRestartOnMemberFailure setAutoScaling
        setSplitBrainProtection setMaxWatermarkRetainMillis setInitialSnapshotName setSuspendOnFailure setMetricsEnabled
        addClass addJar addJarsInZip addPackage addResource addClasspathResource attachFile attachDirectory
        getResourceConfigs setClassLoaderFactory registerSerializer
    """,
    "test": """
        items itemStream longStream assertOrdered assertAnyOrder assertContains assertCollected
        assertCollectedEventually
    """,
}
"""Public names of Jet: those of 0.6, and those that came up to 4.5."""

JET_CELLS = [row[0] for row in [*ROWS, *rows_of(LIBRARY)]]
IN_JET = {name for cell in JET_CELLS for code in CODE.findall(cell) for name in re.findall(r"\w+", code)}
WITHOUT = {name for code in CODE.findall(PAGE.partition("need none:")[2].partition("\n\n")[0]) for name in [code]}
"""Those in the sentence on what has no counterpart."""


@pytest.mark.parametrize("of", JET)
def test_docs_jet_page_has_every_name(of):
    """Each name of Jet's stands in the first column of a table, or among those that have no counterpart."""
    assert sorted(set(JET[of].split()) - IN_JET - WITHOUT) == []
