import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.IntSummaryStatistics;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.TreeMap;
import java.util.stream.Collector;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Runs pipelines on the JDK's own streams. A line of input is {@code source|steps|terminal}, a line of output its
 * result. {@code test_against_the_jdk.py} writes the lines and knows the same words.
 */
public class Judge {
    public static void main(String[] args) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String answer;
            try {
                answer = show(run(line.split("\\|", -1)));
            } catch (RuntimeException error) {
                answer = "!" + error.getClass().getSimpleName();
            }
            System.out.println(answer);
        }
    }

    @SuppressWarnings("unchecked")
    static Object run(String[] parts) {
        Stream<?> stream = source(parts[0].split(":", -1));
        boolean numbers = !parts[0].startsWith("words");
        for (String step : words(parts[1])) {
            String[] word = step.split(":");
            long n = word.length > 1 ? Long.parseLong(word[1]) : 0;
            switch (word[0]) {
                case "limit" -> stream = stream.limit(n);
                case "skip" -> stream = stream.skip(n);
                case "distinct" -> stream = stream.distinct();
                case "sorted" -> stream = stream.sorted();
                case "reversed" -> stream = ((Stream<Comparable<Object>>) stream).sorted(Comparator.reverseOrder());
                case "parallel" -> stream = stream.parallel();
                case "twice" -> stream = stream.flatMap(item -> Stream.of(item, item));
                default -> {
                    stream = numbers ? number((Stream<Integer>) stream, word[0]) : word((Stream<String>) stream, word[0]);
                    numbers = numbers ? !word[0].equals("text") : word[0].equals("length");
                }
            }
        }
        return numbers ? endNumbers((Stream<Integer>) stream, parts[2]) : endWords((Stream<String>) stream, parts[2]);
    }

    static Stream<?> source(String[] parts) {
        return switch (parts[0]) {
            case "numbers" -> words(parts[1]).stream().map(Integer::valueOf);
            case "words" -> words(parts[1]).stream().map(word -> word.equals("-") ? "" : word);
            case "range" -> IntStream.range(Integer.parseInt(parts[1]), Integer.parseInt(parts[2])).boxed();
            case "iterate" -> Stream.iterate(Integer.valueOf(parts[1]), n -> n * 3 % 101).limit(Long.parseLong(parts[2]));
            case "while" -> Stream.iterate(Integer.valueOf(parts[1]), n -> n < 60, n -> n * 2 + 1);
            default -> throw new AssertionError(parts[0]);
        };
    }

    static List<String> words(String text) {
        return text.isEmpty() ? List.of() : Arrays.asList(text.split(" "));
    }

    static int rest(int n, int by) {
        return Math.floorMod(n, by);
    }

    static Stream<?> number(Stream<Integer> stream, String step) {
        return switch (step) {
            case "triple" -> stream.map(n -> n * 3 + 1);
            case "rest5" -> stream.map(n -> rest(n, 5));
            case "half" -> stream.mapToInt(n -> Math.floorDiv(n, 2)).boxed();
            case "long" -> stream.mapToLong(n -> n).map(n -> n - 1).mapToObj(n -> (int) n);
            case "above7" -> stream.filter(n -> n > 7);
            case "even" -> stream.filter(n -> rest(n, 2) == 0);
            case "upto" -> stream.flatMap(n -> rest(n, 4) == 0 ? null : IntStream.range(0, rest(n, 4)).boxed());
            case "multi" -> stream.<Integer>mapMulti((n, emit) -> {
                for (int i = 0; i < rest(n, 3); i++) {
                    emit.accept(n + i);
                }
            });
            case "byrest3" -> stream.sorted(Comparator.comparing(n -> rest(n, 3)));
            case "byrest3down" -> stream.sorted(Comparator.comparing((Integer n) -> rest(n, 3)).reversed());
            case "takebelow20" -> stream.takeWhile(n -> n < 20);
            case "dropbelow20" -> stream.dropWhile(n -> n < 20);
            case "text" -> stream.map(String::valueOf);
            default -> throw new AssertionError(step);
        };
    }

    static Stream<?> word(Stream<String> stream, String step) {
        return switch (step) {
            case "double" -> stream.map(word -> word + word);
            case "head" -> stream.map(word -> word.substring(0, Math.min(1, word.length())));
            case "letters" -> stream.flatMap(word -> word.chars().mapToObj(Character::toString));
            case "short" -> stream.filter(word -> word.length() < 3);
            case "bylength" -> stream.sorted(Comparator.comparing(String::length));
            case "bylengthdown" -> stream.sorted(Comparator.comparing(String::length).reversed());
            case "takeshort" -> stream.takeWhile(word -> word.length() < 4);
            case "dropshort" -> stream.dropWhile(word -> word.length() < 4);
            case "length" -> stream.map(String::length);
            default -> throw new AssertionError(step);
        };
    }

    static Object endNumbers(Stream<Integer> stream, String terminal) {
        Comparator<Integer> byRest = Comparator.comparing(n -> rest(n, 3));
        return switch (terminal) {
            case "sum" -> stream.mapToInt(n -> n).sum();
            case "average" -> stream.mapToInt(n -> n).average();
            case "statistics" -> stream.mapToInt(n -> n).summaryStatistics();
            case "least" -> stream.mapToInt(n -> n).min();
            case "min" -> stream.min(byRest);
            case "max" -> stream.max(byRest);
            case "any" -> stream.anyMatch(n -> n > 50);
            case "all" -> stream.allMatch(n -> n > -40);
            case "none" -> stream.noneMatch(n -> n == 4);
            case "reduce" -> stream.reduce(0, Integer::sum);
            case "reduce1" -> stream.reduce(Integer::max);
            case "group" -> stream.collect(grouping(Collectors.toList()));
            case "groupcount" -> stream.collect(grouping(Collectors.counting()));
            case "groupsum" -> stream.collect(grouping(Collectors.summingInt(n -> n)));
            case "groupaverage" -> stream.collect(grouping(Collectors.averagingInt(n -> n)));
            case "groupmax" -> stream.collect(grouping(Collectors.maxBy(byRest)));
            case "groupfilter" -> stream.collect(grouping(Collectors.filtering(n -> n > 7, Collectors.toList())));
            case "groupflat" -> stream.collect(grouping(Collectors.flatMapping(n -> Stream.of(n, 0), Collectors.toList())));
            case "partition" -> new TreeMap<>(stream.collect(Collectors.partitioningBy(n -> n > 7)));
            case "tomap" -> stream.collect(Collectors.toMap(n -> rest(n, 5), n -> n, (a, b) -> b, TreeMap::new));
            case "tomaponce" -> new TreeMap<>(stream.collect(Collectors.toMap(n -> n, n -> n + 1)));
            case "averaging" -> stream.collect(Collectors.averagingInt(n -> n));
            case "summing" -> stream.collect(Collectors.summingLong(n -> n));
            case "summarizing" -> stream.collect(Collectors.summarizingInt(n -> n));
            case "teeing" -> stream.collect(Collectors.teeing(Collectors.counting(), Collectors.toList(), (n, all) -> List.of(n, all)));
            case "join" -> stream.map(String::valueOf).collect(Collectors.joining(", ", "[", "]"));
            default -> end(stream, terminal);
        };
    }

    static <A, D> Collector<Integer, ?, TreeMap<Integer, D>> grouping(Collector<Integer, A, D> downstream) {
        return Collectors.groupingBy(n -> rest(n, 3), TreeMap::new, downstream);
    }

    static Object endWords(Stream<String> stream, String terminal) {
        Comparator<String> byLength = Comparator.comparing(String::length);
        return switch (terminal) {
            case "min" -> stream.min(byLength);
            case "max" -> stream.max(byLength);
            case "any" -> stream.anyMatch(word -> word.startsWith("b"));
            case "all" -> stream.allMatch(word -> word.length() < 6);
            case "none" -> stream.noneMatch(String::isEmpty);
            case "reduce" -> stream.reduce("", String::concat);
            case "reduce1" -> stream.reduce(String::concat);
            case "reduce3" -> stream.reduce(0, (n, word) -> n + word.length(), Integer::sum);
            case "group" -> stream.collect(Collectors.groupingBy(String::length, TreeMap::new, Collectors.toList()));
            case "groupjoin" -> stream.collect(Collectors.groupingBy(String::length, TreeMap::new, Collectors.joining("-")));
            case "groupset" -> stream.collect(Collectors.groupingBy(
                String::length, TreeMap::new, Collectors.mapping(String::length, Collectors.toSet())));
            case "groupmap" -> stream.collect(Collectors.groupingBy(
                String::length, TreeMap::new, Collectors.mapping(word -> word + "!", Collectors.toList())));
            case "partition" -> new TreeMap<>(stream.collect(Collectors.partitioningBy(word -> word.length() > 1)));
            case "tomap" -> stream.collect(Collectors.toMap(String::length, word -> word, String::concat, TreeMap::new));
            case "tomaponce" -> new TreeMap<>(stream.collect(Collectors.toMap(word -> word, String::length)));
            case "summing" -> stream.collect(Collectors.summingInt(String::length));
            case "join" -> stream.collect(Collectors.joining(", ", "[", "]"));
            default -> end(stream, terminal);
        };
    }

    static Object end(Stream<?> stream, String terminal) {
        return switch (terminal) {
            case "list" -> stream.toList();
            case "count" -> stream.map(item -> item).count();
            case "first" -> stream.findFirst();
            case "collect" -> stream.collect(ArrayList::new, ArrayList::add, ArrayList::addAll);
            case "break" -> {
                List<Object> walked = new ArrayList<>();
                for (var items = stream.iterator(); walked.size() < 3 && items.hasNext(); ) {
                    walked.add(items.next());
                }
                yield walked;
            }
            case "ordered" -> {
                List<Object> walked = new ArrayList<>();
                stream.forEachOrdered(walked::add);
                yield walked;
            }
            default -> throw new AssertionError(terminal);
        };
    }

    /** Doubles are shown as their bits: the shortest text of a double differs between JDKs. */
    static String show(Object value) {
        if (value instanceof String text) {
            return "'" + text + "'";
        }
        if (value instanceof Double number) {
            return "double " + Double.doubleToLongBits(number);
        }
        if (value instanceof Iterable<?> items) {
            List<String> shown = new ArrayList<>();
            items.forEach(item -> shown.add(show(item)));
            return "[" + String.join(", ", shown) + "]";
        }
        if (value instanceof Map<?, ?> map) {
            List<String> shown = new ArrayList<>();
            map.forEach((key, item) -> shown.add(show(key) + ": " + show(item)));
            return "{" + String.join(", ", shown) + "}";
        }
        if (value instanceof Optional<?> found) {
            return found.isPresent() ? show(found.get()) : "empty";
        }
        if (value instanceof OptionalInt found) {
            return found.isPresent() ? show(found.getAsInt()) : "empty";
        }
        if (value instanceof OptionalDouble found) {
            return found.isPresent() ? show(found.getAsDouble()) : "empty";
        }
        if (value instanceof IntSummaryStatistics all) {
            String ends = all.getCount() == 0 ? "" : " " + all.getMin() + " " + all.getMax();
            return all.getCount() + " " + all.getSum() + ends + " " + show(all.getAverage());
        }
        return String.valueOf(value);
    }
}
