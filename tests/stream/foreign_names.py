"""The public names of other libraries, as their users may try them on a stream."""

from __future__ import annotations

JAVA = """
allMatch anyMatch builder collect concat count distinct dropWhile empty filter findAny findFirst flatMap
flatMapToDouble flatMapToInt flatMapToLong forEach forEachOrdered gather generate iterate limit map mapMulti
mapMultiToDouble mapMultiToInt mapMultiToLong mapToDouble mapToInt mapToLong max min noneMatch of ofNullable peek
reduce skip sorted takeWhile toArray toList close isParallel iterator onClose parallel sequential spliterator
unordered mapToObj asLongStream asDoubleStream boxed summaryStatistics average sum range rangeClosed averagingDouble
averagingInt averagingLong collectingAndThen counting filtering flatMapping groupingBy groupingByConcurrent joining
mapping maxBy minBy partitioningBy reducing summarizingDouble summarizingInt summarizingLong summingDouble
summingInt summingLong teeing toCollection toConcurrentMap toMap toSet toUnmodifiableList toUnmodifiableMap
toUnmodifiableSet
"""

PYSPARK_RDD = """
aggregate aggregateByKey barrier cache cartesian checkpoint cleanShuffleDependencies coalesce cogroup collect
collectAsMap collectWithJobGroup combineByKey context count countApprox countApproxDistinct countByKey countByValue
distinct filter first flatMap flatMapValues fold foldByKey foreach foreachPartition fullOuterJoin getCheckpointFile
getNumPartitions getResourceProfile getStorageLevel glom groupBy groupByKey groupWith histogram id intersection
isCheckpointed isEmpty isLocallyCheckpointed join keyBy keys leftOuterJoin localCheckpoint lookup map mapPartitions
mapPartitionsWithIndex mapPartitionsWithSplit mapValues max mean meanApprox min name partitionBy partitioner persist
pipe randomSplit reduce reduceByKey reduceByKeyLocally repartition repartitionAndSortWithinPartitions rightOuterJoin
sample sampleByKey sampleStdev sampleVariance saveAsHadoopDataset saveAsHadoopFile saveAsNewAPIHadoopDataset
saveAsNewAPIHadoopFile saveAsPickleFile saveAsSequenceFile saveAsTextFile setName sortBy sortByKey stats stdev
subtract subtractByKey sum sumApprox take takeOrdered takeSample toDF toDebugString toLocalIterator top
treeAggregate treeReduce union unpersist values variance withResources zip zipWithIndex zipWithUniqueId
"""

PYSPARK_DATA_FRAME = """
agg alias approxQuantile asTable cache checkpoint coalesce colRegex collect columns corr count cov
createGlobalTempView createOrReplaceGlobalTempView createOrReplaceTempView createTempView crossJoin crosstab cube
describe distinct drop dropDuplicates dropDuplicatesWithinWatermark drop_duplicates dropna dtypes exceptAll
executionInfo exists explain fillna filter first foreach foreachPartition freqItems groupBy groupby groupingSets
head hint inputFiles intersect intersectAll isEmpty isLocal isStreaming is_cached join lateralJoin limit
localCheckpoint lookup mapInArrow mapInPandas melt mergeInto metadataColumn na observe offset orderBy pandas_api
persist plot printSchema randomSplit rdd registerTempTable repartition repartitionById repartitionByRange replace
rollup sameSemantics sample sampleBy scalar schema select selectExpr semanticHash show sort sortWithinPartitions
sparkSession stat storageLevel subtract summary tail take to toArrow toDF toJSON toLocalIterator toPandas transform
transpose union unionAll unionByName unpersist unpivot where withColumn withColumnRenamed withColumns
withColumnsRenamed withMetadata withWatermark write writeStream writeTo
"""

ITERTOOLS = """
accumulate batched chain combinations combinations_with_replacement compress count cycle dropwhile filterfalse
groupby islice pairwise permutations product repeat starmap takewhile tee zip_longest zip enumerate reversed reverse
any all len sum min max sorted filter map list set dict tuple next append extend insert index pop remove sort
"""

MORE_ITERTOOLS = """
adjacent all_equal all_unique always_iterable always_reversible before_and_after bucket chunked chunked_even
circular_shifts classify_unique collapse combination_index consume consumer convolve count_cycle countable
derangements difference distinct_combinations distinct_permutations divide dotproduct doublestarmap
duplicates_everseen duplicates_justseen exactly_n extract factor filter_except filter_map first first_true flatten
gray_product groupby_transform grouper ichunked iequals ilen interleave interleave_evenly interleave_longest
interleave_randomly intersperse is_sorted islice_extended iter_except iter_index iter_suppress iterate join_mappings
last locate longest_common_prefix lstrip make_decorator map_except map_if map_reduce mark_ends matmul minmax
multinomial ncycles nth nth_combination nth_or_last nth_permutation nth_product numeric_range one only outer_product
padded padnone pairwise partial_product partition partitions peekable permutation_index polynomial_eval powerset
powerset_of_sets prepend product_index quantify random_combination random_permutation random_product reductions
repeatedly repeatfunc replace reshape rlocate roundrobin rstrip run_length running_median sample seekable
set_partitions side_effect sieve sliced sliding_window sort_together spy split_after split_at split_before
split_into split_when stagger strictly_n strip subslices substrings substrings_indexes sum_of_squares tabulate tail
take takewhile_inclusive time_limited totient transpose triplewise unique unique_everseen unique_in_window
unique_justseen unique_to_each unzip value_chain windowed windowed_complete with_iter zip_broadcast zip_equal
zip_offset
"""

TOOLZ = """
accumulate assoc complement compose concat concatv cons count countby curry diff do dissoc drop excepts first flip
frequencies get get_in groupby identity interleave interpose isdistinct isiterable itemfilter itemmap iterate join
juxt keyfilter keymap last mapcat memoize merge merge_sorted merge_with nth partial partition partition_all
partitionby peek peekn pipe pluck random_sample reduce reduceby remove second sliding_window sorted tail take
take_nth thread_first thread_last topk unique update_in valfilter valmap
"""

STREAMABLE = """
group agroup flatten aflatten do ado foreach aforeach map amap filter afilter throttle truncate skip askip catch
acatch observe zip concat distinct adistinct count acount display pipe filterfalse buffer batch tap window sliding
scan reduce_by_key collect_list to_dict to_tuple to_frozenset aggregate to_set
"""

KOTLIN = """
associate associateBy associateWith average chunked contains distinctBy drop dropLast elementAt filterIndexed
filterIsInstance filterNot filterNotNull find findLast flatten fold foldIndexed forEachIndexed groupingBy indexOf
joinToString last lastOrNull mapIndexed mapNotNull maxBy maxOf minBy minOf none onEach partition plus reversed
runningFold runningReduce shuffled single sortedBy sortedDescending sumBy sumOf toSet unzip windowed withIndex
zipWithNext
"""

LISTS = (JAVA, PYSPARK_RDD, PYSPARK_DATA_FRAME, ITERTOOLS, MORE_ITERTOOLS, TOOLZ, STREAMABLE, KOTLIN)
FOREIGN_NAMES = sorted({name for names in LISTS for name in names.split()})
