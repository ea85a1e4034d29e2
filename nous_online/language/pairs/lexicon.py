"""Closed word lists the guards and the pair features read: function words, numbers, units, opposites, rival sets."""
# ruff: noqa: SIM905, E501 — a list of words reads best as words

from __future__ import annotations

FUNCTION_WORDS = frozenset(
    """a an the this that these those some any each every all both either neither such another other
    i you he she it we they me him her us them my your his its our their mine yours hers ours theirs myself himself herself
    itself who whom whose which what when where why how there here then than so as if because while although though
    since until unless whether is are was were be been being am do does did done doing have has had having can could
    will would shall should may might must ought not no nor and or but of in on at by for from to with without into onto
    upon over under about against between among through during before after above below up down out off again also too
    very just only even still yet already now today currently one ones s t re ve ll d m per via etc mr mrs ms dr""".split()
)
SINGULAR_VERBS = frozenset("is was has does isn't wasn't hasn't doesn't".split())
COPULAS = frozenset("is are was were be been being called named known as".split())
NEVER_NAMES = frozenset(
    """i mr mrs ms dr sir the a an someone somebody everyone everybody anyone anybody nobody something everything
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september
    october november december""".split()
)
DEMONYM_ENDS = frozenset("ish an ian n ese i er ans ians ic".split())
PLACE_ENDS = frozenset(["", "y", "ey", "o", "a", "e", "ia", "s", "land"])
ALIASES = {
    "united states of america": "USA", "united states": "USA", "usa": "USA", "united kingdom": "UK",
    "square kilometres": "sqkm", "square kilometers": "sqkm", "square kilometre": "sqkm", "square kilometer": "sqkm",
    "square km": "sqkm", "sq km": "sqkm", "sq kms": "sqkm", "km2": "sqkm", "square metres": "sqm", "square meters": "sqm", "sq m": "sqm",
    "m2": "sqm", "square miles": "sqmi", "sq miles": "sqmi", "sq mi": "sqmi", "european union": "EU", "united nations": "UN", "new york city": "NYC", "los angeles": "LA",
}  # fmt: skip
# Words a wording may add or leave out: what is left of a statement without them is what it says.
LIGHT_WORDS = frozenset(
    """located locate locates location lies lie lying lay situated situates sits found find finds placed place places position
    positioned stands standing based name names named called titled title titles known considered given total overall
    part parts particular certain different various there one some something someone used using serves served serve
    goes go comes come came made make makes held holds hold took take takes taken gave give gives gets get got having
    exists exist stated lists listed thing things person people man's woman's work works worked become became becomes
    consists consist within inside whose which also currently presently really actually official officially""".split()
) - frozenset("inside work works worked people served serve serves different standing lying".split())
KIND_NOUNS = frozenset(
    """city town village state country county region area district province nation island river dish book novel film movie
    song album company team service project tool language year date month day number name amount type kind sort piece
    municipality community field role position post job title journal magazine character footballer player writer artist
    club band method category group""".split()
)
# What narrows a noun: with it a statement says something else than without.
RESTRICTORS = frozenset(
    """main only largest biggest smallest first last former current new old second third other next previous major minor
    chief head deputy vice assistant acting senior junior several many most few all both every each half almost nearly
    least main primary secondary northern southern eastern western upper lower former best worst least oldest youngest""".split()
)
_ROOTS = """lead: leads led leader leaders leadership leading | own: owns owned owner owners ownership | found: founded founder
founders founding founds foundation establish established establishes establishment | born: birth birthplace births
birthdate birthday | die: died dies death deaths dead dying | write: writes wrote written writer writers author authors
authored authoring | marry: married marries marriage spouse spouses wed wedded | operate: run runs ran running operates operated operator
operating operation operations operational | locat: headquarter headquarters headquartered hq | built: build builds building construct
constructed construction constructs | finish: finished completed completes completion complete | speak: spoken speaks spoke
speaking language languages | inhabit: population inhabitants inhabitant residents resident populated | elev: elevation
elevated altitude | above: height high tall | long: length lengths lengthy | wide: width | weigh: weight weighs weighed | deep: depth |
precede: preceded precedes predecessor preceding | follow: followed follows successor succeeded sequel following succeeds |
ingredient: ingredients contains contain containing includes include including included | origin: originates originate
originated originally originating origins | play: plays played player players playing | manage: manager manages managed
managing management | direct: director directs directed | teach: teaches taught teacher teaching | employ: employs employed
employer employment | publish: publisher published publishes publication | award: awarded awards receive received receives recipient
win: wins won winner winning | study: studied studies graduate graduated alma attend attended attends |
job: occupation profession work works worked works | like: likes liked fond enjoys enjoy enjoyed | buy: bought acquire
acquired acquires acquisition buys purchase purchased| identifier: id ids identifiers identification identified | choose: selected select selection selects hired picked
| begin: began begun start started starts starting commenced |
end: ended ends ending finished | nation: nationality national | serve: serves served
serving | design: designed designs designer architect architects architecture | fight: fought battle battles fights fighting |
abbreviate: abbreviated abbreviation abbreviations acronym | start: launch launched launches | kid: child children kids |
film: movie movies films | big: large | small: little | quick: fast rapid | bike: bicycle bicycles bikes | cut: slice sliced
slicing slices cutting cuts chopping chops | car: automobile vehicle"""
ROOTS = {
    word: root.strip()
    for entry in _ROOTS.replace("\nwin:", " | win:").split("|")
    for root, _, words in [entry.partition(":")]
    for word in (*words.split(), root.strip())
}
NEGATORS = frozenset(
    "not no never none nobody nothing nowhere neither nor without cannot hardly barely scarcely".split()
)
QUASI_NEGATORS = frozenset("lacks lacked lacking denies denied avoids avoided dislikes hates unable".split())
# These turn a statement round only with a verb after them: "fails to start", "stopped eating meat".
NEGATORS_BEFORE_VERBS = frozenset(
    """fail fails failed failing refuse refuses refused refusing stop stops stopped quit cease ceases ceased decline declines
    declined""".split()
)
RAISING_VERBS = frozenset(
    "think thinks thought believe believes believed expect expects seem seems want wants appear".split()
)
DETERMINERS = frozenset("the a an its his her their my our your this that these those".split())
INTENTIONS = frozenset(
    """plan plans planned planning want wants wanted intend intends intended consider considers considering considered hope
    hopes hoped hoping might may could should would wish wishes thinking propose proposes proposed try tries trying
    almost nearly probably possibly perhaps maybe reportedly allegedly""".split()
)

MONTHS = {
    "january": "jan", "february": "feb", "march": "mar", "april": "apr", "may": "may", "june": "jun", "july": "jul",
    "august": "aug", "september": "sep", "october": "oct", "november": "nov", "december": "dec",
}  # fmt: skip
NUMBER_WORDS = {
    word: value
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen".split()
    )
    if word != "one"
} | {
    word: 10 * value
    for value, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2)
}  # fmt: skip
ORDINAL_WORDS = {
    word: value
    for value, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(), start=1
    )
    if word != "second"
}
SCALES = {
    "hundred": 1e2, "k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "bn": 1e9, "billion": 1e9, "trillion": 1e12,
}  # fmt: skip

_UNIT_SPELLINGS: dict[str, dict[float, str]] = {
    "time": {
        1e-9: "ns nanosecond nanoseconds", 1e-6: "us µs microsecond microseconds",
        1e-3: "ms msec millisecond milliseconds", 1.0: "s sec secs second seconds", 60.0: "min mins minute minutes",
        3600.0: "h hr hrs hour hours", 86400.0: "day days", 604800.0: "week weeks wk wks",
    },
    "month": {1.0: "month months", 12.0: "year years yr yrs"},
    "length": {
        1e-3: "mm millimetre millimetres millimeter millimeters", 1e-2: "cm centimetre centimetres centimeter centimeters",
        1.0: "m metre metres meter meters", 1e3: "km kilometre kilometres kilometer kilometers",
        0.0254: "inch inches", 0.3048: "ft foot feet", 0.9144: "yd yard yards", 1609.344: "mi mile miles",
    },
    "mass": {
        1e-3: "mg milligram milligrams", 1.0: "g gram grams", 1e3: "kg kgs kilo kilos kilogram kilograms",
        453.592: "lb lbs pound pounds", 28.3495: "oz ounce ounces", 1e6: "tonne tonnes",
    },
    "bytes": {
        1.0: "byte bytes", 1e3: "kb kilobyte kilobytes", 1e6: "mb megabyte megabytes", 1e9: "gb gigabyte gigabytes",
        1e12: "tb terabyte terabytes", 1024.0: "kib", 1048576.0: "mib", 1073741824.0: "gib",
    },
    "area": {1.0: "sqm", 1e6: "sqkm", 2589988.11: "sqmi", 1e4: "hectare hectares ha"},
    "share": {1.0: "% percent pct"},
    "volume": {1e-3: "ml millilitre millilitres milliliter milliliters", 1.0: "litre litres liter liters"},
    "usd": {1.0: "usd dollar dollars", 0.01: "cent cents"},
    "eur": {1.0: "eur euro euros"},
    "gbp": {1.0: "gbp"},
    "jpy": {1.0: "jpy yen"},
    "celsius": {1.0: "°c celsius"},
    "fahrenheit": {1.0: "°f fahrenheit"},
    "power": {1.0: "watt watts", 1e3: "kw kilowatt kilowatts", 1e6: "mw megawatt megawatts"},
    "frequency": {1.0: "hz hertz", 1e3: "khz", 1e6: "mhz", 1e9: "ghz"},
    "speed": {1.0: "kmh kph", 1.609344: "mph"},
}  # fmt: skip
UNITS = {
    word: (dimension, factor)
    for dimension, spellings in _UNIT_SPELLINGS.items()
    for factor, words in spellings.items()
    for word in words.split()
}

_OPPOSITES = """always/never all/none everyone/nobody everything/nothing on/off up/down in/out inside/outside before/after
with/without near/far above/below over/under left/right true/false yes/no open/closed opened/closed open/shut opens/closes
opening/closing enabled/disabled enable/disable enables/disables allow/forbid allowed/forbidden allows/forbids
allowed/prohibited permitted/forbidden accept/reject accepted/rejected accepts/rejects approve/reject approved/rejected
increase/decrease increased/decreased increases/decreases increasing/decreasing rise/fall rose/fell rises/falls rising/falling
raise/lower raised/lowered gain/lose gained/lost win/lose won/lost wins/loses start/stop started/stopped starts/stops
begin/end began/ended begins/ends add/remove added/removed adds/removes buy/sell bought/sold buys/sells borrow/lend
import/export imports/exports imported/exported send/receive sent/received push/pull pushing/pulling pushed/pulled
love/hate loves/hates loved/hated like/dislike likes/dislikes liked/disliked enjoy/hate enjoys/hates prefer/avoid prefers/avoids
hot/cold warm/cool wet/dry full/empty heavy/light dark/light big/small large/small huge/tiny huge/small big/little
large/little long/short tall/short high/low deep/shallow wide/narrow thick/thin fast/slow quick/slow quickly/slowly
early/late new/old young/old rich/poor strong/weak hard/soft hard/easy difficult/easy easy/difficult loud/quiet noisy/quiet
happy/sad good/bad best/worst better/worse clean/dirty safe/dangerous safe/unsafe alive/dead awake/asleep public/private
internal/external input/output minimum/maximum min/max first/last top/bottom front/back ascending/descending north/south
east/west northern/southern eastern/western upper/lower major/minor possible/impossible legal/illegal valid/invalid
stable/unstable active/inactive able/unable available/unavailable known/unknown include/exclude includes/excludes
included/excluded present/absent pass/fail passed/failed passes/fails succeed/fail succeeded/failed success/failure
standing/sitting sitting/lying walking/running climbing/descending arrive/leave arrived/left arrives/leaves enter/leave
enters/leaves entered/left join/leave joined/left married/divorced married/single vegetarian/carnivore optional/required
optional/mandatory manual/automatic synchronous/asynchronous sync/async mutable/immutable ancient/modern formal/informal
man/woman men/women boy/girl boys/girls male/female king/queen husband/wife father/mother son/daughter brother/sister
uncle/aunt his/her he/she him/her himself/herself more/less most/least many/few much/little older/younger larger/smaller
bigger/smaller higher/lower greater/lesser longer/shorter faster/slower earlier/later stronger/weaker former/latter
teacher/student teachers/students parent/child employer/employee landlord/tenant day/night morning/evening onto/off
put/take putting/removing remove/put loading/unloading wearing/removing locked/unlocked lock/unlock connected/disconnected
online/offline supports/opposes supported/opposed support/oppose agree/disagree agrees/disagrees agreed/disagreed
confirmed/denied confirms/denies guilty/innocent beginning/end maternal/paternal domestic/foreign domestic/wild indoor/outdoor
indoors/outdoors vertical/horizontal positive/negative even/odd
"""
OPPOSITES = frozenset(
    pair
    for entry in _OPPOSITES.split()
    for one, _, other in [entry.partition("/")]
    for pair in ((one, other), (other, one))
)

RIVALS = tuple(
    frozenset(group.split())
    for group in (
        "red orange yellow green blue purple violet pink brown black white gray grey cyan magenta turquoise beige golden",
        "monday tuesday wednesday thursday friday saturday sunday",
        " ".join(month for month in MONTHS if month not in {"march", "may"}),
        "spring summer autumn winter",
        "hourly daily weekly biweekly fortnightly monthly quarterly yearly annually annual",
        "morning afternoon evening night",
        "breakfast lunch dinner",
        "mother father sister brother son daughter uncle aunt cousin nephew niece grandmother grandfather wife husband",
        "python java javascript typescript rust golang ruby kotlin swift scala php haskell perl elixir",
        "english french german spanish italian portuguese russian chinese japanese korean arabic hindi dutch swedish polish",
        "postgres postgresql mysql sqlite mongodb mariadb cassandra redis dynamodb",
        "aws azure gcp heroku",
        "production staging development",
        "dev staging prod",
        "guitar piano violin drums drum flute trumpet cello harp saxophone keyboard",
        "dog cat horse cow sheep goat pig rabbit hamster parrot monkey elephant lion tiger bear panda kangaroo",
        "coffee tea beer wine water juice milk cola",
        "bus train car plane bicycle bike boat ship tram taxi motorcycle truck",
        "potato tomato onion carrot cucumber pepper garlic broccoli spinach",
        "swimming running cycling climbing dancing singing sleeping cooking reading writing painting",
        "small medium large",
        "low moderate medium high critical",
        "left right center centre",
    )
)
# Words of degree: each changes what a statement says, but two of them need not deny each other.
DEGREES = tuple(
    frozenset(group.split())
    for group in (
        "always often sometimes rarely never",
        "all most some none",
        "slightly moderately severely",
        "slight moderate severe",
        "start middle end",
        "may must",
    )
)
RIVAL_SPELLINGS = {
    "grey": "gray",
    "postgresql": "postgres",
    "drum": "drums",
    "bicycle": "bike",
    "centre": "center",
    "annually": "yearly",
    "annual": "yearly",
    "frequently": "often",
    "occasionally": "sometimes",
    "seldom": "rarely",
    "mildly": "slightly",
    "mild": "slight",
    "might": "may",
}
PAIRED_WORDS = frozenset[str]().union({word for pair in OPPOSITES for word in pair}, *RIVALS, *DEGREES, RIVAL_SPELLINGS)
SYMMETRIC = frozenset(
    """and or both between with met meets married near beside equals same adjacent versus vs cousin sibling siblings friend friends
    neighbor neighbour borders bordering together resembles similar plus times like as where when while but than""".split()
)
LIKING = frozenset("speak speaks prefer prefers like likes love loves enjoy enjoys dislike dislikes hate hates".split())
# Verbs a subject may have many objects of: another object is another fact, no new value of the same slot.
MANY_VALUED = frozenset(
    """prefer prefers like likes liked enjoy enjoys enjoyed love loves loved know knows knew speak speaks spoke own owns owned have has had
    use uses used visit visits visited meet meets met buy buys bought read reads watch watches watched eat eats ate see sees
    saw write writes wrote made make makes went go goes attended attends tried tries said says told asked played won
    recommended contain contains contained include includes included ingredient ingredients one
    spoken used sold seen found worn drink drinks cook cooks travels collect collects follow follows support supports help helps teach teaches
    depend depends rely relies require requires need needs fail fails affect affects cause causes caused integrate
    integrates sponsored play plays run runs listen listens talk talks send sends sent volunteer volunteers believe believes
    vote votes stop stops responsible available useful good bad ready
    allergic interested fond afraid familiar experienced fan fans member members part friend friends colleague
    colleagues cousin cousins sibling siblings brother brothers sister sisters example examples""".split()
)
# Things of which one has several, unless "the", "our" or one of `SINGLING` picks one out.
ONE_OF_SEVERAL = frozenset("son daughter child kid cat dog flight appointment meeting hobby language".split())
SINGLING = frozenset(
    """eldest oldest youngest elder younger only first second third last next final main primary preferred favourite favorite
    native official original default""".split()
)
# With these a statement adds to what is known, or recalls what was: neither gives a slot a new value.
ADDITIONS = frozenset("also too another additionally besides both else again sometimes often usually".split())
PAST_MARKERS = frozenset(
    "formerly previously former previous ex originally earlier once ago then yesterday before used".split()
)
# Who is meant changes from one statement to the next.
UNIDENTIFIED = frozenset(
    """a an some any someone somebody anyone anybody everyone everybody something anything everything people several many
    few most all every each another other others there here this that these those no one you we us""".split()
)
# Nouns that ask for one value, of whatever kind: "the status is green", "her job is teaching".
ATTRIBUTES = frozenset(
    """name title number address email phone age birthday birthdate birthplace size height weight length width depth colour
    color status state stage phase version port region zone religion nationality citizenship occupation job role
    position profession salary income budget price cost rate limit quota threshold timeout deadline date day time schedule
    frequency duration goal target plan purpose reason type kind genre category sport species format unit currency
    favourite favorite choice preference default policy location venue destination
    home hometown diet major degree grade level rank score record password username url model brand make""".split()
)
# Verbs that do no more than tie a thing to an attribute called by its name: "holds the position of".
HOLDING = frozenset("has have holds hold bears bear carries carry uses use speaks speak plays play takes take".split())
# Past verbs that say how things are since then, or that happen once.
CHANGING = frozenset(
    """moved relocated switched changed migrated upgraded downgraded renamed transferred became set promoted appointed
    elected rescheduled postponed delayed shifted reduced increased decreased dropped rose grew fell raised lowered
    replaced assigned retired born died founded created established built released published opened launched married
    divorced located based situated scheduled planned employed educated headquartered named called titled""".split()
)
IRREGULAR_PAST = frozenset(
    """went came ate saw met gave took spoke ran sat slept flew drove wrote bought sold sent held led won lost made found
    had did said told left kept hit fought sang taught thought began broke brought caught chose drank felt forgot heard
    knew paid rode sang stood swam threw understood woke wore hosted""".split()
)
# What happens on these days may happen on others too: "is published on Monday".
HABITUAL = frozenset("published released opened launched".split())
DAY_PARTS = frozenset("morning afternoon evening night weekend weekday mornings evenings weekends weekdays".split())
# Being where one lives: a second place may lie in the first.
DWELLING = frozenset("live lives living reside resides residing stay stays staying".split())
NEWLY = frozenset("now currently moved relocated since".split())
# Places wide enough to hold others: "Rome" and "Italy" are both true.
WIDE_PLACES = frozenset(
    """africa america asia australia europe oceania scandinavia england scotland wales britain uk usa eu ireland france germany
    italy spain portugal netherlands holland belgium luxembourg switzerland austria denmark sweden norway finland iceland
    poland czechia slovakia hungary romania bulgaria greece turkey serbia croatia slovenia bosnia albania macedonia
    montenegro estonia latvia lithuania ukraine belarus moldova russia georgia armenia azerbaijan kazakhstan uzbekistan
    israel palestine lebanon syria jordan iraq iran arabia yemen oman qatar kuwait emirates egypt libya tunisia algeria
    morocco sudan ethiopia kenya uganda tanzania rwanda nigeria ghana senegal cameroon congo angola zambia zimbabwe
    mozambique namibia botswana madagascar india pakistan bangladesh nepal lanka afghanistan china japan korea taiwan
    mongolia vietnam thailand cambodia laos myanmar malaysia indonesia philippines zealand canada mexico guatemala
    honduras nicaragua cuba haiti jamaica colombia venezuela ecuador peru bolivia brazil paraguay uruguay argentina chile
    california texas florida bavaria catalonia tuscany lombardy provence""".split()
)
# Being at something that lasts; any other "is …ing" is of the moment.
PROGRESSIVE_STATES = frozenset("living working staying studying residing".split())
DATED = frozenset({*MONTHS, *MONTHS.values(), "noon", "midnight", "tomorrow"}) | frozenset(
    "monday tuesday wednesday thursday friday saturday sunday".split()
)
# The commonest small words of French, Spanish, German, Italian, Portuguese, Dutch and Polish that are no English words.
FOREIGN_WORDS = frozenset(
    """le la les des du une est et qui que dans pour pas nous vous je il elle ne sur avec au aux ce cette ma mes ses son leur sont
    ont el los las del un es en por para con se lo su sus al muy una hay mi ya der die das und ist nicht ein eine einen mit für von
    zu den dem im wir ich sie er auf wird sind hat bei gli di che non della nel ha sono ci da dei alla os um uma dos na nos com
    não ao em é de het een van niet wij ik op voor zijn te aan wordt nie jest się z po mam mnie dla od""".split()
)
