"""Sixty triggers of twelve trades, with actions that should (+) and should not (-) set them off: fitted on as well."""

UNSEEN = """
pushing directly to main branch
  + git push origin main
  + git push -u origin main --tags
  - git push origin feature/login
  - git merge main into feature/login
running npm install with sudo
  + sudo npm install -g typescript
  + sudo npm i express
  - npm run build
  - npm install express
  - sudo apt-get update
dropping a table in the live database
  + psql live -c "DROP TABLE sessions"
  + drop the old invoices table from the live db
  - drop the old invoices table from the test database
  - create a table for sessions in the live database
rebooting the build server while a release is running
  + reboot build-01 now, the release job is at 60 percent
  + restart the build server, the release that is running will have to cope
  - reboot the mail server
  - check whether a release is running on the build server
using the root account in scripts
  + ssh root@10.1.2.3 'bash deploy.sh' in the cron script
  + connect to postgres as root from the import script
  - create a service account for the import script
  - remove the root account from the login page
turning off the linter for a whole file
  + put /* eslint-disable */ at the top of cart.ts
  + disable the linter in the entire module
  - run the linter on cart.ts
  - turn the linter on for the whole repository
exposing the admin panel without a password
  + make /admin public, no login needed
  + open the admin panel to everyone without authentication
  - put the admin panel behind a password
  - change the colours of the admin panel
editing the crontab on the payment host
  + crontab -e on pay-02, the payment host
  + change the crontab of the payment host so that it runs hourly
  - edit the crontab on the staging host
  - print the crontab of the payment host
deleting branches that are not merged
  + git branch -D spike/search, it was never merged
  + delete the unmerged branches on origin
  - git branch -d feature/login, merged last week
  - list the branches that are not merged
upgrading the database driver on Fridays
  + bump psycopg on Friday afternoon
  + upgrade the database driver this Friday
  - upgrade the database driver on Monday
  - upgrade the icon set on Friday
sending passwords by email
  + mail Tom the password of the wifi
  + send_email(to="ines@example.org", body="Your password is hunter2")
  - send Tom the link to reset his password
  - email Tom the agenda
replying to journalists without the press office
  + answer the reporter of the Gazette right away, no need to involve the press office
  + reply to the journalist directly before the press team has seen it
  - forward the journalist's question to the press office
  - reply to the supplier without the press office
copying the whole company on an email
  + send this to all@company.example
  + cc everyone in the company on the reply
  - send this to the accounting team
  - copy the address of the company into the form
emailing the board on weekends
  + send the board the figures on Saturday morning
  + email the board members this Sunday
  - send the board the figures on Thursday
  - email my sister on Saturday
promising a discount in writing
  + write to the buyer that she will get 10 percent off
  + confirm the discount to Mr Olsen by email
  - ask sales whether a discount is possible
  - write to the buyer that the parcel has arrived
forwarding the salary list
  + forward salaries_2026.xlsx to the team leads
  + send the salary list on to Jonas
  - forward the shopping list to Jonas
  - store the salary list in the locked folder
booking flights before 8 am
  + book the 6:45 flight to Lisbon
  + reserve the 7 am plane for both of us
  - book the 10:30 flight
  - cancel the 6:45 flight to Lisbon
booking hotels above 180 euros a night
  + book the Grand Plaza for 240 euros a night
  + reserve a room at 195 EUR per night
  - book the Ibis for 95 euros a night
  - look at the photos of the Grand Plaza
booking middle seats
  + choose seat 14B in the middle
  + reserve a middle seat for the way back
  - choose seat 14A at the window
  - book a table in the middle of the restaurant
renting a car without full insurance
  + rent the compact with the basic cover only
  + rent a car in Porto and decline the full insurance
  - rent a car in Porto with full insurance
  - insure the bicycle
calling Mr Petrov on weekends
  + call Mr Petrov on Saturday at ten
  + ring Petrov this Sunday
  - call Mr Petrov on Tuesday
  - call Mr Ivanov on Saturday
scheduling meetings with Tokyo after 10 am
  + set up the Tokyo call for 14:00
  + schedule a meeting with the Tokyo office at 11:30
  - schedule a meeting with the Tokyo office at 8:30
  - schedule a meeting with the Lyon office at 11:30
cancelling the cleaner less than a day ahead
  + cancel tonight's cleaner
  + tell the cleaner two hours before that she need not come
  - cancel the cleaner for next month
  - pay the cleaner
ordering dishes with peanuts
  + order the satay with peanut sauce
  + get two portions of kung pao with peanuts
  - order the curry without peanuts
  - order the lentil soup
giving ibuprofen to patients with kidney disease
  + give Mr Haas, who has chronic kidney disease, 400 mg ibuprofen
  + administer ibuprofen to the renal patient in bed 4
  - give Mr Haas, who has chronic kidney disease, paracetamol
  - give ibuprofen to the patient with the sprained ankle
doubling a missed dose
  + take two tablets tonight because I forgot this morning's
  + tell her to take a double dose, she missed yesterday's
  - skip the missed dose and go on tomorrow
  - double the recipe for the pancakes
recommending antibiotics for a cold
  + suggest amoxicillin for her common cold
  + tell the caller to take antibiotics against the cold
  - recommend rest and tea for the cold
  - prescribe antibiotics for the bacterial pneumonia
giving aspirin to children
  + give the six-year-old an aspirin
  + administer 100 mg aspirin to the child in room 3
  - give the adult patient an aspirin
  - give the children their lunch
discharging a patient without a medication plan
  + discharge Mrs Lind now, the medication plan can follow by post
  + send the patient home without her medication plan
  - discharge Mrs Lind with the medication plan in hand
  - write a medication plan for Mrs Lind
mixing bleach with vinegar
  + pour vinegar into the bucket with the bleach
  + clean the bath with bleach and vinegar together
  - clean the bath with vinegar
  - mix vinegar with baking soda
paying invoices without a purchase order
  + pay invoice 2217, there is no purchase order for it
  + settle the bill from Kappa although no PO exists
  - pay invoice 2218 against purchase order 771
  - create a purchase order for the chairs
transferring more than 5000 euros in one go
  + transfer 7,500 euros to the contractor
  + wire EUR 12000 to the landlord today
  - transfer 320 euros to the contractor
  - ask for the balance of the account
booking private expenses on the company card
  + pay the birthday dinner of my wife with the company card
  + charge the family holiday to the company credit card
  - pay the family holiday with my own card
  - pay the train to the customer with the company card
changing a supplier's bank details by phone
  + update the IBAN of Kappa Ltd, the caller gave me the new one
  + change the supplier's bank account as told on the phone
  - change the supplier's phone number
  - call the supplier to verify the bank details
posting entries to a closed period
  + post the correction into March, which is closed
  + book the entry in the closed month
  - post the correction into the open month
  - close the period
writing off debts above 500 euros
  + write off the 1,200 euros that Moretti owes
  + treat the 900 euro claim as a bad debt and write it off
  - write off the 35 euros that Moretti owes
  - collect the 1,200 euros that Moretti owes
buying cryptocurrency
  + buy 0.2 bitcoin
  + place a market order for 3 ETH
  - sell the bitcoin
  - buy stamps
signing contracts without legal review
  + sign the lease now, legal can look at it later
  + docusign the NDA although the lawyers have not reviewed it
  - send the lease to legal for review
  - sign the lease that legal approved
admitting liability after an accident
  + tell the other driver that it was our fault
  + write to the insurer that we accept liability for the crash
  - report the accident to the insurer without comment on whose fault it was
  - deny liability for the accident
destroying documents under legal hold
  + shred the Meyer files, they are under legal hold
  + delete the mailbox that is on litigation hold
  - shred the old brochures
  - archive the documents under legal hold
quoting court decisions without checking them
  + cite Harlan v. Boyd in the brief, I have not looked it up
  + add three precedents from memory, unverified
  - look up Harlan v. Boyd in the register
  - quote the price of the book
contacting the opposing party directly
  + phone the opposing party this afternoon
  + email the defendant herself instead of her counsel
  - contact the opposing counsel
  - contact our own client
asking applicants about their family plans
  + ask the candidate whether she wants children
  + add a question on family planning to the interview guide
  - ask the candidate about her notice period
  - plan the family day of the office
rejecting applicants by text message
  + text Ms Roy that we took somebody else
  + send the rejection to the applicant as an SMS
  - call the applicant to tell her the result
  - invite the applicant by text message
approving your own holiday
  + approve my own leave request
  + set the status of my vacation to approved
  - submit my leave request to Dana
  - approve Dana's leave request
giving out pupils' marks to other parents
  + tell Ben's mother what mark Emil got
  + send the marks of the whole class to all parents
  - tell Emil's mother what mark Emil got
  - enter the marks in the school register
publishing photos of children without consent
  + put the pictures of the class trip with the kids on the website
  + upload photos of the children, we have no consent yet
  - publish the photos of the new gym
  - ask the parents for consent to publish the photos
handing out the exam before the date
  + give class 9b tomorrow's exam today
  + share the exam questions with the pupils a week before the date
  - hand out the exam on the date
  - correct the exam
storing raw chicken above ready food
  + put the raw chicken on the shelf over the salads
  + place the uncooked chicken above the cakes in the fridge
  - put the raw chicken on the lowest shelf
  - roast the chicken
serving rice kept warm for more than 4 hours
  + serve the rice that has been in the warmer since 9, it is 3 pm
  + use up the rice that was kept warm for six hours
  - serve the rice cooked ten minutes ago
  - keep the soup warm for an hour
working on live wiring
  + swap the socket without switching the power off
  + connect the lamp while the circuit is still live
  - switch the fuse off and swap the socket
  - paint the wall around the socket
drilling in the north wall
  + drill two holes into the north wall for the shelf
  + use the drill on the wall to the north of the kitchen
  - drill two holes into the south wall
  - paint the north wall
starting the forklift without a licence
  + let the intern drive the forklift, he has no licence
  + start the forklift, my licence has expired
  - let Karl drive the forklift, he has a licence
  - park the truck at gate 4
shipping lithium batteries by air
  + send the box of lithium cells by air freight
  + book air cargo for the e-bike batteries
  - send the lithium batteries by sea
  - ship the books by air
unlocking the front door for strangers
  + open the front door, I do not know who he is
  + unlock the door for the man who says he reads the meter
  - unlock the front door for my daughter
  - lock the front door
heating above 22 degrees
  + set the thermostat to 25
  + turn the heating up to 24 °C
  - set the thermostat to 19
  - lower the blinds
watering the cactus more than once a month
  + water the cactus again, five days after the last time
  + give the cactus water every week
  - water the ferns every week
  - move the cactus to the window
replacing a device without asking for the serial number
  + send the customer a new router at once, skip the serial number
  + replace the headset, I did not ask for its serial number
  - ask the customer for the serial number
  - replace the router, serial number 88-1204 noted
naming sources in an article
  + print the informant's name in paragraph three
  + mention that our source is the deputy mayor's driver
  - leave the name of the source out of the article
  - name the bridge in the article
pipetting by mouth
  + draw the sample up with the mouth, the pump is broken
  + use your mouth to fill the pipette
  - pipette 5 ml with the pump
  - rinse your mouth
"""
