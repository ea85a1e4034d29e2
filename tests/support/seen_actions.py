"""More triggers with actions that should (+) and should not (-) set them off: what the matcher is fitted on."""

SEEN = """
committing to the release branch during the freeze
  + git commit -am "hotfix" on release/3.2, the freeze is on
  + push one more commit to the release branch while we are frozen
  - git commit -am "hotfix" on feature/cart
  - create the release branch
installing packages with sudo pip
  + sudo pip install pandas
  + sudo pip3 install -U requests
  - pip install pandas
  - pip list
  - sudo systemctl restart nginx
deleting a bucket in the production project
  + gsutil rb gs://prod-uploads
  + delete the uploads bucket of the production project
  - delete the uploads bucket of the sandbox project
  - list the buckets in the production project
  - empty the recycle bin
restarting the database while backups are running
  + restart postgres although the backup has not finished
  + reboot the database server in the middle of the backup
  - restart the cache server
  - take a backup of the database
  - restart the database, the backups are done
editing files in the vendor folder
  + sed -i 's/foo/bar/' vendor/lib/http.go
  + patch the parser in the vendor directory
  - edit src/http.go
  - list the files in the vendor folder
  - write an email to the vendor
pushing docker images with the latest tag
  + docker push shop/api:latest
  + push the image to the registry, tagged latest
  - docker push shop/api:1.4.2
  - docker pull shop/api:latest
  - push the code to the branch
changing permissions to 777
  + chmod -R 777 /var/www
  + set the rights of the upload folder to 777
  - chmod 640 config.ini
  - show the permissions of the upload folder
running migrations on the replica
  + run the migration on the read replica
  + python manage.py migrate --database replica
  - run the migration on the primary
  - measure the lag of the replica
merging on Friday afternoon
  + merge pull request 81, it is Friday 16:00
  + gh pr merge 90 this Friday after lunch
  - merge pull request 81 on Monday morning
  - review pull request 81 on Friday afternoon
deploying after 4 pm
  + deploy the shop at 17:30
  + roll out version 8 this evening at 6 pm
  - deploy the shop at 10:15
  - read the deploy log at 17:30
sharing the screen with the chat open
  + share my screen in the call, the chat window is open
  + start screen sharing with the team chat still visible
  - close the chat and share my screen
  - share the recipe with the team
writing to customers in German
  + schreibe der Kundin auf Deutsch; send her the German text
  + answer the customer's mail in German
  - answer the customer's mail in English
  - read the German manual
mailing attachments larger than 20 MB
  + email the 45 MB video to Paula
  + attach the 30 MB scan to the mail and send it
  - email the 2 MB photo to Paula
  - upload the 45 MB video to the share
replying to all
  + reply-all with the answer
  + answer everybody on the thread at once
  - reply to Ines only
  - read all replies
sending newsletters on Mondays
  + send out the newsletter on Monday at nine
  + mail the news to the subscribers this Monday
  - send out the newsletter on Wednesday
  - write the newsletter on Monday
  - send the invoice on Monday
accepting meetings during lunch
  + accept the invitation for 12:15, at lunch time
  + say yes to the meeting over lunch on Thursday
  - accept the invitation for 15:00
  - order lunch for the meeting
  - decline the meeting at lunch
booking flights with a stopover
  + book the flight via Frankfurt, two hours between planes
  + reserve the connection to Oslo with one stop
  - book the direct flight to Oslo
  - look at flights with a stopover
booking rooms facing the street
  + reserve the hotel room on the street side
  + book room 12 which looks onto the street
  - book room 14 facing the garden
  - walk down the street
travelling by night train
  + buy a ticket for the night train to Vienna
  + take the sleeper that leaves at 23:10
  - buy a ticket for the 9:10 train to Vienna
  - read a book about trains
booking restaurants for more than 8 people
  + book a table for twelve at Luigi's
  + reserve at the Italian restaurant for 10 persons
  - book a table for four at Luigi's
  - cook for twelve
renting apartments above 1500 euros a month
  + sign up for the flat at 1,900 euros a month
  + rent the apartment for 1750 EUR monthly
  - rent the apartment for 1100 EUR monthly
  - sell the apartment
paying with the visa card
  + pay the tickets with the Visa
  + use the visa card for this order
  - pay the tickets with the Mastercard
  - apply for a visa
ordering from the supplier Nordwell
  + order twenty chairs from Nordwell
  + place the order for paper at Nordwell
  - order twenty chairs from Kvist
  - ask Nordwell when the chairs arrive
ordering more than 50 pieces
  + order 80 pieces of the blue cup
  + buy 120 mugs for the shop
  - order 20 pieces of the blue cup
  - count the pieces
transferring money to accounts abroad
  + wire 300 euros to an account in Singapore
  + transfer the fee to the foreign account
  - transfer the fee to our account in town
  - travel abroad
paying invoices before the due date
  + pay invoice 51 today, it is due in three weeks
  + settle the bill two weeks early
  - pay invoice 51 on its due date
  - print invoice 51
deducting the VAT of restaurant bills
  + claim back the VAT on the dinner at Luigi's
  + deduct the value added tax of the restaurant receipt
  - deduct the VAT of the laptop
  - pay the restaurant bill
granting credit to new customers
  + let the new customer pay in 60 days
  + give the customer who registered yesterday a credit line
  - let the new customer pay in advance
  - grant credit to our customer of ten years
prescribing penicillin to allergic patients
  + prescribe penicillin to Mrs Otto, who is allergic to it
  + give the patient with the penicillin allergy penicillin V
  - prescribe doxycycline to Mrs Otto, who is allergic to penicillin
  - prescribe penicillin to Mr Weiss, no allergies known
giving insulin before breakfast
  + inject 6 units of insulin, she has not eaten breakfast yet
  + administer insulin at 7 before the morning meal
  - give insulin after lunch
  - serve breakfast
taking blood pressure pills with grapefruit juice
  + take the amlodipine with a glass of grapefruit juice
  + wash down the blood pressure tablet with grapefruit juice
  - take the amlodipine with water
  - buy grapefruit juice
exceeding 4 g of paracetamol a day
  + take 5 g paracetamol today
  + give her ten tablets of paracetamol 500 mg today
  - take 1 g paracetamol in the evening
  - store the paracetamol in the drawer
lifting the patient alone
  + lift Mr Brandt out of bed by myself
  + move the patient to the chair without a second person
  - lift Mr Brandt together with Ana
  - call the patient's sister
giving blood test results by phone
  + tell Mrs Lam her blood results on the phone
  + phone the patient to read out the lab values
  - send Mrs Lam to the lab for a blood test
  - hand Mrs Lam her results in the practice
signing on behalf of the director
  + sign the letter for the director
  + put the director's signature under the contract
  - ask the director to sign the letter
  - sign my own timesheet
deleting mails older than the retention period
  + delete all mails from 2015, the retention period is over
  + purge the mail that is past its retention
  - delete the spam of today
  - archive all mails from 2015
negotiating a settlement without the partner
  + offer the other side 20,000 to settle, the partner does not know
  + negotiate the settlement on my own without our partner
  - prepare the settlement talk with the partner
  - read the settlement
giving tax advice
  + tell the client which costs she can deduct from her taxes
  + advise him to move his savings to lower the tax
  - refer the client to a tax adviser
  - send the client the tax form
recording calls without telling the caller
  + record the call, she does not know it
  + turn on the recorder before the caller is told
  - tell the caller that we record, then start the recording
  - return the call of Mrs Stein
hiring relatives of employees
  + hire the brother of our accountant
  + offer the job to Jonas's cousin
  - hire the woman who applied on Tuesday
  - invite relatives to the summer party
asking about a candidate's age
  + ask the applicant how old she is
  + what year were you born? (question to the candidate)
  - ask the applicant about her last job
  - check the age of the laptop
shouting at pupils
  + yell at the class to be quiet
  + raise my voice against Tim in the lesson
  - praise the class
  - read a story to the pupils
letting children use the kiln
  + let the kids load the kiln
  + allow pupils to switch the kiln on
  - let the teacher load the kiln
  - let the children paint the pots
feeding the dog chocolate
  + give the dog a piece of chocolate
  + let Bello have the rest of the chocolate cake
  - give the dog a bone
  - eat the chocolate
watering the lawn at noon
  + turn on the lawn sprinkler at 12
  + water the grass at midday
  - water the lawn at 7 in the evening
  - mow the lawn at noon
pruning the apple tree in summer
  + cut back the apple tree in July
  + prune the apple tree this August
  - prune the apple tree in February
  - pick the apples in August
frying with olive oil
  + heat olive oil in the pan and fry the steak
  + fry the eggs in olive oil
  - fry the eggs in butter
  - pour olive oil over the salad
storing tomatoes in the fridge
  + put the tomatoes into the refrigerator
  + keep tomatoes in the fridge over night
  - put the tomatoes on the window sill
  - put the milk into the fridge
driving the van without a second driver
  + drive the van to Lyon alone
  + take the van, no second driver could come
  - drive the van to Lyon together with Karl
  - drive the small car alone
loading the truck above 12 tons
  + load 14 tons onto the truck
  + put another pallet on, the truck is at 12.6 tons then
  - load 9 tons onto the truck
  - wash the truck
opening the windows during the experiment
  + open the window of the lab while the experiment runs
  + let some air in through the window, the measurement goes on
  - open the windows after the experiment
  - close the windows during the experiment
using the red cable
  + connect the sensor with the red cable
  + take the red wire for the ground
  - connect the sensor with the blue cable
  - paint the cable duct red
turning on the sauna when nobody is home
  + start the sauna now, we are all out
  + switch on the sauna, no one is at home
  - switch off the sauna
  - turn on the sauna, Lea and I are home
playing music after 10 pm
  + play the party playlist at 23:30
  + turn on the loudspeaker with music at half past ten in the evening
  - play the party playlist at 4 pm
  - buy a music subscription
quoting the mayor without permission
  + print what the mayor said to me, she has not agreed to it
  + quote the mayor in the article without her consent
  - ask the mayor for permission to quote her
  - quote the police report
publishing before the embargo ends
  + put the story online now, the embargo ends tomorrow
  + publish the study today although it is embargoed until Thursday
  - publish the study after the embargo
  - write the story
giving the alarm code to tradesmen
  + tell the plumber the alarm code
  + text the electrician the code of the alarm
  - let the plumber in
  - change the alarm code
  - tell my wife the alarm code
climbing the roof in the rain
  + go up on the roof, it is raining
  + climb onto the wet roof while it rains
  - climb the roof on a dry day
  - look at the roof from below
selling alcohol to minors
  + sell the beer to the boy of fifteen
  + serve wine to a 16-year-old
  - sell lemonade to the boy of fifteen
  - sell the beer to the lady
"""
