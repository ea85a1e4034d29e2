"""Sentences written for the training: wordings of one statement, and the values that may fill them."""
# ruff: noqa: SIM905, E501 — a list of words reads best as words, a wording best on one line

from __future__ import annotations

VALUES: dict[str, tuple[str, ...]] = {
    "person": tuple(
        """Alice Moreau,Bob Hartley,Chen Wei,Dana Okafor,Elif Demir,Farid Haddad,Greta Lindqvist,Hugo Almeida,Ines Ferreira,
        Jonas Weber,Kavya Nair,Liam O'Connor,Maria Kowalska,Noah Fischer,Olga Petrova,Paulo Mendes,Quinn Harper,Rosa Jimenez,
        Samuel Adeyemi,Tomoko Ishida,Ursula Brandt,Viktor Novak,Wanda Zielinski,Xavier Dupont,Yusuf Rahman,Zoe Papadakis,
        Anton Berg,Bella Conti,Cyrus Mehta,Daria Ivanova""".replace("\n        ", "").split(",")
    ),
    "city": tuple(
        """Lisbon,Kraków,Nairobi,Osaka,Toronto,Valparaíso,Leipzig,Bergen,Hanoi,Lyon,Seville,Accra,Perth,Tampere,Ghent,Turin,
        Austin,Boston,Portland,Manchester,Rotterdam,Izmir,Pune,Busan,Quito""".replace("\n        ", "").split(",")
    ),
    "place": tuple(
        """Portugal,Poland,Kenya,Japan,Canada,Chile,Germany,Norway,Vietnam,France,Spain,Ghana,Australia,Finland,Belgium,Italy,
        Texas,Ontario,Bavaria,Catalonia,Brittany,Kerala,Oregon,Tuscany""".replace("\n        ", "").split(",")
    ),
    "work": tuple(
        """The Silent Orchard,Letters from the Delta,A Winter in Ghent,The Clockmaker's Map,Blue Harbour,Nine Small Rooms,
        The Last Ferry,Under Copper Skies,The Salt Road,Paper Lanterns,Notes on a Tide,The Glass Garden""".replace(
            "\n        ", ""
        ).split(",")
    ),
    "company": tuple(
        """Northwind Labs,Helix Foods,Brightwater Bank,Orbital Freight,Larkspur Media,Tidal Systems,Cobalt Motors,Juniper Health,
        Summit Rail,Quanta Tools,Meridian Press,Fernhill Energy""".replace("\n        ", "").split(",")
    ),
    "thing": tuple(
        """Harbour Bridge,Eastgate Airport,Linden Hall,Saint Brendan's Hospital,Riverside Stadium,Maple County Library,Castle Rock
        Museum,Greenfield College,Hotel Aurora,Tower of Winds,Mill Lake,Northern Line""".replace(
            "\n        ", " "
        ).split(",")
    ),
    "dish": tuple(
        "Moorland stew,Coral soup,Harvest cake,Fennel bread,Saffron rice,Plum dumplings,Pepper pie,Lemon curry".split(
            ","
        )
    ),
    "food": tuple(
        "butter,rice,garlic,honey,cinnamon,chickpeas,almonds,coconut milk,spinach,ginger,potatoes,cheese".split(",")
    ),
    "title": tuple(
        "Golden Quill,Order of the Heron,Marlow Medal,Silver Compass,Northern Star Award,Linden Prize".split(",")
    ),
    "month": tuple("January February March April June July August September October November December".split()),
    "dom": tuple("2 5 7 9 12 14 18 21 23 26 28 30".split()),
    "code": tuple("QXR,VLTN,K7-204,HBR,ZW4,EGAM,T1988,NWLX".split(",")),
    "tongue": tuple("Portuguese,Finnish,Polish,Vietnamese,Catalan,Swahili,Norwegian,Dutch".split(",")),
    "coin": tuple("the krona,the peso,the shilling,the zloty,the dinar,the rupee".split(",")),
    "few": tuple("3 4 6 8 11 14 19 23 31 47".split()),
    "decimal": tuple("12.5 48.0 86.3 140.2 297.9 412.0 655.4 1093.6".split()),
    "genre": tuple("jazz,science fiction,folk music,crime fiction,ambient,punk rock,historical fiction".split(",")),
    "form": tuple("hardcover,paperback,e-book,audiobook".split(",")),
    "role": tuple("goalkeeper,striker,defender,midfielder,captain,treasurer,chairman,secretary".split(",")),
    "material": tuple("granite,oak,brick,steel,marble,sandstone".split(",")),
    "nickname": tuple("the Quiet Giant,the Bell Town,the Old Lady,the River Queen,the Iron Duchess".split(",")),
    "number": tuple("12 40 75 118 260 415 730 1204 2850 5300 9641 17500 48020".split()),
    "year": tuple("1874 1902 1931 1956 1968 1979 1987 1994 2001 2009 2016 2021".split()),
    "job": tuple(
        "architect,nurse,novelist,engineer,violinist,teacher,journalist,pilot,chemist,painter,judge,surgeon".split(",")
    ),
    "service": tuple(
        "billing service,search index,payment gateway,image pipeline,login page,mobile app,report generator,event bus".split(
            ","
        )
    ),
    "tool": tuple(
        "Redis,Kafka,Terraform,Grafana,Django,Kubernetes,RabbitMQ,Nginx,Airflow,Sentry,Vault,Jenkins".split(",")
    ),
    "hobby": tuple("chess,pottery,sailing,hiking,gardening,baking,photography,fencing,origami,climbing".split(",")),
    "day": tuple("Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()),
    "team": tuple(
        "the platform team,the design group,the data team,the support desk,the mobile crew,the research group".split(
            ","
        )
    ),
}

# Each line is one statement in several wordings, any two of which say the same; `{x2}` is a second value of the same kind.
FACTS: tuple[tuple[str, ...], ...] = tuple(
    tuple(wording.strip() for wording in line.split("|"))
    for line in """
    {person} was born in {city}. | {city} is the birthplace of {person}. | {person}'s birthplace is {city}. | The birth place of {person} is {city}. | {person} was born in the city of {city}.
    {person} died in {city}. | The place where {person} died is {city}. | {person}'s place of death is {city}. | {city} is where {person} died.
    {person} lives in {city}. | {person} is living in {city}. | {city} is where {person} lives. | {person} resides in {city}. | {person}'s home is in {city}.
    {person} works as a {job}. | {person} is a {job}. | {person}'s profession is {job}. | The occupation of {person} is {job}. | {person} is a {job} by profession.
    {person} works for {company}. | {person} is employed by {company}. | {company} employs {person}. | {company} is the employer of {person}. | {person} is an employee of {company}.
    {person} is the chief executive of {company}. | The chief executive of {company} is {person}. | {company}'s chief executive is {person}. | {company} is led by chief executive {person}.
    {person} founded {company}. | {company} was founded by {person}. | {person} is the founder of {company}. | The founder of {company} is {person}. | {company}'s founder was {person}.
    {company} was founded in {year}. | {company} was established in {year}. | The founding year of {company} is {year}. | {year} is the year {company} was founded.
    {company} has its headquarters in {city}. | {company} is headquartered in {city}. | The headquarters of {company} are in {city}. | {city} is home to the headquarters of {company}. | {company}'s headquarters are located in {city}.
    {person} wrote {work}. | {work} was written by {person}. | The author of {work} is {person}. | {person} is the author of {work}. | {work} is a book by {person}.
    {work} was published in {year}. | The publication year of {work} is {year}. | {work} came out in {year}. | {work} was first published in {year}.
    {work} was published by {company}. | The publisher of {work} is {company}. | {company} published {work}. | {company} is the publisher of {work}.
    {work} was followed by {work2}. | {work2} is the sequel to {work}. | {work2} came after {work}. | {work} was succeeded by {work2}.
    {work} was preceded by {work2}. | {work2} came before {work}. | {work2} precedes {work}.
    {thing} is located in {city}. | {thing} is in {city}. | {thing} can be found in {city}. | The location of {thing} is {city}. | {thing} is situated in {city}.
    {city} is part of {place}. | {city} is in {place}. | {city} is a part of {place}. | {city} is located in {place}. | {city} lies in {place}.
    The capital of {place} is {city}. | {city} is the capital of {place}. | {place}'s capital is {city}. | {place} has {city} as its capital.
    The largest city in {place} is {city}. | {city} is the largest city in {place}. | {place}'s largest city is {city}. | {city} is {place}'s biggest city.
    The leader of {place} is {person}. | {person} is the leader of {place}. | {place}'s leader is {person}. | {person} leads {place}. | {place} is led by {person}.
    The mayor of {city} is {person}. | {person} is the mayor of {city}. | {city}'s mayor is {person}. | {person} is mayor of {city}.
    {thing} was designed by {person}. | {person} designed {thing}. | {person} was the architect of {thing}. | The architect of {thing} is {person}. | {thing}'s architect was {person}.
    {thing} was built in {year}. | The construction of {thing} was completed in {year}. | {thing} was completed in {year}. | {thing}'s completion date is {year}.
    {thing} is operated by {company}. | {company} operates {thing}. | The operator of {thing} is {company}. | {company} is the operating organisation of {thing}. | {thing} is run by {company}.
    {thing} is owned by {company}. | {company} owns {thing}. | The owner of {thing} is {company}. | {company} is the owner of {thing}.
    The length of {thing} is {number} metres. | {thing} is {number} metres long. | {thing} has a length of {number} metres. | {thing}'s length is {number} m.
    The population of {city} is {number}. | {city} has a population of {number}. | {number} people live in {city}. | {city}'s population is {number}. | {city} has {number} inhabitants.
    {city} is {number} metres above sea level. | The elevation of {city} is {number} metres above sea level. | {city} has an elevation of {number} metres above sea level. | {city} is located {number} metres above sea level.
    The area of {city} is {number} square kilometres. | {city} has an area of {number} square kilometres. | {city} has a total area of {number} sq km. | {city} covers {number} square kilometres.
    {dish} comes from {place}. | {dish} is a dish from {place}. | {dish} originates from {place}. | {place} is where {dish} comes from. | {dish} is a traditional dish of {place}.
    {food} is an ingredient of {dish}. | {dish} contains {food}. | One of the ingredients of {dish} is {food}. | {food} is one of the ingredients in {dish}. | {dish} includes {food}. | {food} is used in {dish}.
    The main ingredient of {dish} is {food}. | {food} is the main ingredient in {dish}. | {dish}'s main ingredient is {food}.
    {person} is married to {person2}. | {person2} is the spouse of {person}. | {person}'s spouse is {person2}. | {person} and {person2} are married.
    {person} plays for {city} United. | {person} is a player of {city} United. | {city} United is the club of {person}. | {person}'s club is {city} United.
    {person} is the manager of {city} United. | The manager of {city} United is {person}. | {city} United is managed by {person}. | {person} manages {city} United. | {city} United's manager is {person}.
    {person} graduated from {thing}. | {person}'s alma mater is {thing}. | The alma mater of {person} is {thing}. | {person} studied at {thing}. | {person} attended {thing}.
    {person} won the {company} Prize in {year}. | The {company} Prize was won by {person} in {year}. | In {year}, {person} won the {company} Prize. | {person} was the winner of the {company} Prize in {year}.
    {person} likes {hobby}. | {person} enjoys {hobby}. | {person} is fond of {hobby}. | {hobby} is something {person} likes.
    {person}'s favourite hobby is {hobby}. | The favourite hobby of {person} is {hobby}. | {hobby} is {person}'s favourite hobby.
    {person} started {hobby} in {year}. | In {year}, {person} took up {hobby}. | {person} took up {hobby} in {year}. | {person} has been into {hobby} since {year}.
    The {service} uses {tool}. | The {service} is built on {tool}. | {tool} is used by the {service}. | We use {tool} for the {service}.
    The {service} is maintained by {team}. | {team} maintains the {service}. | The maintainer of the {service} is {team}. | {team} is in charge of the {service}.
    The {service} was moved to {tool} in {year}. | In {year}, the {service} was migrated to {tool}. | The {service} was migrated to {tool} in {year}.
    The {service} listens on port {number}. | The port of the {service} is {number}. | The {service} runs on port {number}. | Port {number} is used by the {service}.
    The {service} is owned by {person}. | {person} owns the {service}. | {person} is the owner of the {service}. | The owner of the {service} is {person}.
    The user prefers {tool} to {tool2}. | The user prefers {tool} over {tool2}. | The user likes {tool} better than {tool2}. | {tool} is preferred to {tool2} by the user. | User prefers {tool} over {tool2}.
    {team} meets on {day}. | {team} has its meeting on {day}. | The meeting of {team} is on {day}. | {team} holds its meeting every {day}.
    Deploys of the {service} happen on {day}. | The {service} is deployed on {day}. | We deploy the {service} on {day}. | {day} is the deploy day of the {service}.
    {person} reports to {person2}. | {person}'s manager is {person2}. | {person2} is the manager of {person}. | The manager of {person} is {person2}.
    {person} moved from {city} to {city2}. | {person} relocated from {city} to {city2}. | {person} left {city} and moved to {city2}.
    {person} moved to {city} in {year}. | In {year}, {person} moved to {city}. | It was in {year} that {person} moved to {city}. | {person} relocated to {city} in {year}.
    {person} is allergic to {food}. | {person} has an allergy to {food}. | {person} has a {food} allergy. | {food} gives {person} an allergic reaction.
    {company} acquired {company2}. | {company2} was acquired by {company}. | {company} bought {company2}. | {company2} was bought by {company}.
    {company} acquired {company2} in {year}. | In {year}, {company} acquired {company2}. | {company2} was acquired by {company} in {year}.
    {person} introduced {person2} to {hobby}. | {person2} was introduced to {hobby} by {person}. | It was {person} who introduced {person2} to {hobby}.
    {thing} is in {city}, {place}. | {thing} is located in {city} in {place}. | The location of {thing} is {city}, {place}. | {thing} can be found in {city}, {place}. | {thing}, {place}, is situated in {city}. | {thing} ({place}) is in {city}, {place}.
    {city}, {place} is part of {place2}. | {city} in {place} is in {place2}. | {city}, {place}, is a part of {place2}. | {city} ({place}) is located in {place2}. | {city}, {place} lies within {place2}.
    {city} is a city in {place}. | The city of {city} is in {place}. | {city} is one of the cities in {place}. | {city} is in {place}. | The country of {city} is {place}. | The country {city} is in is {place}.
    {person} was born on {dom} {month} {year}. | {person}'s date of birth is {month} {dom}, {year}. | The birth date of {person} is {dom} {month} {year}. | {person} was born on the {dom}th of {month}, {year}. | {person}'s birthday is {month} {dom}, {year}.
    {person} died on {dom} {month} {year}. | {person}'s date of death was {month} {dom}, {year}. | {person} passed away on {month} {dom}, {year}. | The death of {person} was on {dom} {month} {year}.
    {person} was born in {year}. | {person}'s birth year is {year}. | The year of birth of {person} is {year}. | {year} is the year {person} was born.
    {person} is {place}'s ambassador. | {person} is the ambassador of {place}. | The ambassador of {place} is {person}. | {person} serves as the ambassador of {place}.
    {person} received the {title}. | {person} was awarded the {title}. | The {title} was awarded to {person}. | {person} won the {title}. | {person} is a recipient of the {title}. | The {title} went to {person}.
    {person} plays as a {role}. | {person}'s position is {role}. | The position {person} plays is {role}. | {person} is a {role}.
    {person} was a member of the {thing} crew. | {person} was a crew member of {thing}. | {person} was part of the crew of {thing}. | {person} served on the crew of {thing}. | {person} was one of the {thing} crew members.
    {person} is a native of {place}. | {person}'s nationality is {place}. | The nationality of {person} is {place}. | {person} comes from {place}. | {person} is from {place}.
    The language spoken in {place} is {tongue}. | {tongue} is spoken in {place}. | The language of {place} is {tongue}. | In {place} the language is {tongue}. | {place}'s language is {tongue}. | One of the languages of {place} is {tongue}. | {tongue} is one of the languages spoken in {place}. | {tongue} is a language spoken in {place}.
    The official language of {place} is {tongue}. | {tongue} is the official language of {place}. | {place}'s official language is {tongue}. | {place} has {tongue} as its official language.
    The currency of {place} is {coin}. | {coin} is the currency of {place}. | {place}'s currency is {coin}. | {place} uses {coin} as its currency. | The currency used in {place} is {coin}.
    {work} has {number} pages. | {work} is {number} pages long. | The number of pages in {work} is {number}. | There are {number} pages in {work}. | {work} contains {number} pages. | {work}'s page count is {number}.
    {work} is available as {form}. | {work} was published in {form}. | {work} can be found in {form}. | {form} is the format of {work}. | {work} is available in {form}. | {work} was released as {form}.
    The genre of {work} is {genre}. | {work} belongs to the {genre} genre. | {work} is {genre}. | {work}'s genre is {genre}. | {genre} is the genre of {work}.
    {person} performs {genre}. | {person}'s genre is {genre}. | The musical genre of {person} is {genre}. | {person} plays {genre}. | {genre} is the genre {person} performs.
    The code of {thing} is {code}. | {thing}'s code is {code}. | {code} is the code of {thing}. | {thing} has the code {code}. | {thing} uses the code {code}. | {thing} is identified by the code {code}.
    The station identifier of {thing} is {code}. | {thing}'s station identifier is {code}. | {code} is the station identifier of {thing}. | {thing} has {code} as its station identifier. | {thing} has the station ID {code}.
    {thing} has {few} floors. | There are {few} floors in {thing}. | {thing}'s floor count is {few}. | The number of floors in {thing} is {few}. | {thing} is {few} floors high. | {thing} has a total of {few} floors.
    {thing} has {number} members. | There are {number} members in {thing}. | The number of members of {thing} is {number}. | {thing}'s membership is {number}. | {thing} counts {number} members.
    {thing} has {number} employees. | {number} people are employed at {thing}. | {thing} employs {number} people. | The number of employees at {thing} is {number}. | The staff of {thing} numbers {number}.
    The total area of {city} is {decimal} square kilometres. | {city} has an area of {decimal} sq km. | {city}, {place} has a total area of {decimal} square kilometres. | {city} covers an area of {decimal} square kilometers. | {city}'s total area is {decimal} sq km. | The area of {city}, {place} is {decimal} square kilometres.
    The land area of {city} is {decimal} square kilometres. | {city} has {decimal} sq km of land. | {city} has a land area of {decimal} square kilometres. | {city}'s land area is {decimal} sq km.
    {city} has {decimal} square kilometres of water. | The water area of {city} is {decimal} sq km. | {decimal} square kilometres of {city} is water. | The area of water in {city} is {decimal} square kilometres.
    The population density of {city} is {decimal} inhabitants per square kilometre. | {city} has a population density of {decimal} people per square kilometer. | {city}'s population density is {decimal} inhabitants per sq km. | There are {decimal} people per square kilometre in {city}.
    {thing} is {number} feet above sea level. | The elevation of {thing} is {number} feet above sea level. | {thing} has an elevation of {number} feet above sea level. | {thing} sits {number} feet above sea level. | {thing} lies at an elevation of {number} feet. | {thing} is elevated {number} feet above the sea level. | {thing}'s elevation above sea level in feet is {number}.
    The height of {thing} is {decimal} metres. | {thing} is {decimal} metres high. | {thing} is {decimal} metres tall. | {thing} has a height of {decimal} m. | {thing}'s height is {decimal} metres.
    The platform length of {thing} is {decimal} metres. | {thing}'s platform is {decimal} metres long. | The length of the platform at {thing} is {decimal}. | {thing} has a platform length of {decimal} metres. | {thing}'s platform length is {decimal}. | The platform at {thing} has a length of {decimal} m.
    The area code of {city} is {few}. | {city}'s area code is {few}. | {few} is the area code of {city}. | {city}, {place} has the area code {few}. | {city} uses area code {few}.
    {thing} serves the city of {city}. | {thing} serves {city}. | {city} is served by {thing}. | The city served by {thing} is {city}. | {thing} is the airport for {city}.
    {city} United plays in the {title} League. | {city} United are in the {title} League. | {city} United competes in the {title} League. | The league of {city} United is the {title} League. | The {title} League is the league {city} United plays in.
    {city} United play at {thing}. | {thing} is the home ground of {city} United. | {city} United's ground is {thing}. | The home ground of {city} United is {thing}. | The ground of {city} United is called {thing}.
    {city} United were champions of the {title} League. | The champions of the {title} League are {city} United. | {city} United have been {title} League champions. | {city} United won the {title} League.
    {thing} is affiliated with {company}. | {thing}'s affiliation is {company}. | {thing} has an affiliation with {company}. | The affiliation of {thing} is with {company}.
    {thing} is made of {material}. | The material of {thing} is {material}. | {thing} was built from {material}. | {material} is the material {thing} is made of.
    {person} is also known as {nickname}. | {person}'s nickname is {nickname}. | The nickname of {person} is {nickname}. | {person} is nicknamed {nickname}. | An alternative name for {person} is {nickname}.
    {city} is nicknamed {nickname}. | The nickname of {city} is {nickname}. | {city} is also known as {nickname}. | {nickname} is the nickname of {city}.
    The {title} is held in {city}. | {city} hosts the {title}. | The {title} takes place in {city}. | {city} is the venue of the {title}.
    {person} fought in the {place} War. | {person} took part in the {place} War. | The {place} War was a battle {person} fought in. | {person} was involved in the {place} War. | {person} participated in the {place} War.
    {person} is the president of {company}. | The president of {company} is {person}. | {company}'s president is {person}. | {person} serves as president of {company}. | The name of the president of {company} is {person}.
    {person} is the chairman of {company}. | The chairman of {company} is {person}. | {company}'s chairman is {person}. | {company} has {person} as its chairman.
    {person} retired in {year}. | {person} went into retirement in {year}. | The year {person} retired was {year}. | {person}'s retirement was in {year}.
    {person} started working in {year}. | {person} began working in {year}. | {person} has been active since {year}. | {person}'s career began in {year}.
    {person}'s sister is {person2}. | {person} is the brother of {person2}. | {person2} is the sister of {person}. | {person} has a sister named {person2}.
    {person} is the doctoral advisor of {person2}. | {person2}'s doctoral advisor is {person}. | The doctoral advisor of {person2} was {person}. | {person2} had {person} as doctoral advisor.
    {dish} is found in {place}. | {dish} is a dish found in {place}. | {dish} can be found in {place}. | {place} is the region where {dish} is found. | {dish} is popular in {place}.
    {dish} is served at a temperature of {few} degrees. | The serving temperature of {dish} is {few} degrees. | {dish} should be served at {few} degrees.
    {dish} can be varied by using {food}. | {food} can be added to {dish}. | A variation of {dish} uses {food}. | {dish} can include {food}. | A variant of {dish} has {food} in it.
    The {service} has {few} replicas. | There are {few} replicas of the {service}. | The number of replicas of the {service} is {few}. | The {service} runs with {few} replicas.
    The {service} was released on {dom} {month} {year}. | The release date of the {service} is {month} {dom}, {year}. | The {service} came out on {month} {dom}, {year}.
    The default {service} is {tool}. | {tool} is the default {service}. | {tool} is our default {service}. | We use {tool} as the default {service}.
    {person} is on {team}. | {person} is a member of {team}. | {team} includes {person}. | {person} belongs to {team}. | A member of {team} is {person}.
    {person} leads {team}. | {person} is the leader of {team}. | {team} is led by {person}. | The leader of {team} is {person}. | {team}'s leader is {person}.
    {person}, a {job} from {city}, wrote {work} in {year}. | {work} was written in {year} by {person}, a {job} from {city}. | In {year}, {work} was written by {person}, a {job} from {city}.
    {person} said that the {service} will move to {tool}. | The {service} will move to {tool}, {person} said. | According to {person}, the {service} will move to {tool}.
    {company} said on {day} that it will open an office in {city}. | {company} will open an office in {city}, it said on {day}. | On {day}, {company} said it would open an office in {city}.
    """.strip().splitlines()
)

# Everyday scenes: who, doing, what, where; synonyms inside a slot are written with "/".
ACTORS = tuple(
    "man,woman,boy,girl,kid/child,dog/hound,person,cat/feline,chef/cook,soldier,player,lady,guy/man,toddler/infant,horse,biker/cyclist".split(
        ","
    )
)
TRAITS = tuple(
    "young,old,small/little,tall,tired/weary,happy/cheerful,wet,brown,black,big/large,strange/odd,fast/quick".split(",")
)
# verb-ing | past participle | present | objects
DEEDS = tuple(
    tuple(part.strip() for part in line.split("|"))
    for line in """
    cutting/slicing | cut/sliced | cuts/slices | an onion,a potato/some potatoes,a tomato,bread/some bread,a cucumber
    playing | played | plays | a guitar/the guitar,a flute,the piano/a piano,a drum,a violin
    carrying | carried | carries | a bag/a sack,a box,a stick,a basket,a camera
    throwing/tossing | thrown/tossed | throws/tosses | a ball,a stone/a rock,a frisbee,a rope,a stick
    riding | ridden | rides | a bike/a bicycle,a horse,a motorbike/a motorcycle,a skateboard,an elephant
    washing/cleaning | washed/cleaned | washes/cleans | a car,a window,the dishes,a shirt,the floor
    painting | painted | paints | a wall,a fence,a picture/a painting,a house,a door
    pushing/shoving | pushed/shoved | pushes/shoves | a cart,a stroller,a boat,a table,a bicycle
    chasing/pursuing | chased/pursued | chases/pursues | a ball,a cat,a rabbit,a bird,another dog
    holding | held | holds | a sign,a baby,a cup,a flag,an umbrella
    fixing/repairing | fixed/repaired | fixes/repairs | a roof,a bike/a bicycle,a lamp,a sink,an engine
    reading | read | reads | a book,a newspaper,a letter,a map,a magazine
    eating | eaten | eats | an apple,a sandwich,some cake,a banana,some pizza
    opening | opened | opens | a package/a parcel,a gate,a bottle,an envelope,a can
    hugging/embracing | hugged/embraced | hugs/embraces | a friend,a teddy bear,a child,a tree,a dog
    watching | watched | watches | a film/a movie,a bird,the match/the game,the sea/the ocean,a parade
    """.strip().splitlines()
)
SPOTS = tuple(
    """,,,in a park/in the park,on the beach/at the beach,near a lake/next to a lake,on the street/in the street,in the snow,on a stage/on stage,in front of a house/before a house,
    under a tree/beneath a tree,in the kitchen,behind a fence,in a field/in the field,beside a road/next to a road""".replace(
        "\n    ", ""
    ).split(",")
)
MANNERS = tuple(",,,quickly/rapidly,slowly,carefully/cautiously,quietly/silently,happily/cheerfully".split(","))

# What turns a statement into a narrower one when it is put before a noun or at the end.
QUALIFIERS = tuple(
    "former main first new second only acting deputy northern major official assistant original temporary joint local".split()
)
ADDITIONS = (
    "in {place}", "and {city}", "with {person}", "for two years", "until {year}", "in the north", "at night",
    "near {city}", "and {food}", "but not for long", "as of {year}", "in old age", "for {person}",
)  # fmt: skip
