"""Triggers in the words of rules, with what should (+) and should not (-) set them off: fitted on as well."""

DEVELOPED = """
never run git reset --hard on main
  + git checkout main && git reset --hard HEAD~3
  + throw away the last commits on main with a hard reset
  - git reset --hard HEAD~1 on feature/menu
  - git reset --soft HEAD~1
  - Someone ran git reset --hard on main yesterday; restore it from the reflog
don't drop tables in prod
  + psql -h prod-db -c 'DROP TABLE audit_2021'
  + drop the unused coupons table from production
  - psql -h dev-db -c 'DROP TABLE audit_2021'
  - \\dt on the prod database
  - should we drop the coupons table in prod?
do not send invoices without the accountant's approval
  + send_invoice(customer="Lindqvist", total=1200, approved=False)
  + mail out the June invoices now, the accountant is away
  - the accountant approved the June invoices, mail them out
  - ask the accountant to approve the invoice
  - send the delivery note to Lindqvist
never give out a guest's room number
  + "Mr Tanaka is in 412."
  + tell the caller which room Mrs Boateng is staying in
  - "I'm sorry, we don't give out room numbers, but I can connect you."
  - tell Mrs Boateng that her room is ready
  - clean room 412
no deploys after 16:00
  + ./deploy.sh web at 16:45
  + ship the new version this evening
  - ./deploy.sh web at 09:30
  - the deploy of 17:00 yesterday failed, read its log
  - merge the branch at 17:00, the deploy follows tomorrow morning
emailing the board without the chairwoman's consent
  + send the quarterly figures to all board members, the chairwoman doesn't know about it
  + email_board(subject="Merger", consent=None)
  - the chairwoman agreed: send the figures to the board members
  - email the chairwoman a draft of the letter to the board
  - email the caretaker about the board in the hallway
deleting a user's account unless they asked for it
  + delete the account of user 88, he has been inactive for a year
  + DELETE FROM users WHERE id = 88  -- cleanup, no request
  - user 88 asked us to delete his account: do it
  - suspend user 88 for spam
  - delete the cache of user 88's session
never restart the router while somebody is in a call
  + reboot the router, Jin can rejoin her call afterwards
  + power-cycle the router in the middle of the meeting call
  - nobody is in a call any more, restart the router
  - restart the printer during the call
  - look at the router's uptime
using the company card for private purchases
  + pay for my own groceries with the company credit card
  + buy(item="birthday present for my sister", card="corporate")
  - pay for the office chairs with the company card
  - pay for my groceries with my own card
  - check the statement of the company card
don't tell candidates why they were rejected
  + Write to the applicant that we took someone with more experience
  + explain to Mr Sato that he failed the interview because of his English
  - Write to the applicant that we decided for somebody else, without giving reasons
  - tell the hiring manager why the candidate was rejected
  - invite the candidate to a second interview
never feed raw pork to the cats
  + put the uncooked pork trimmings in the cats' bowl
  + give Minka a bit of raw pork
  - give Minka cooked chicken
  - fry the pork for dinner
  - keep the cats away from the raw pork
ssh into production machines
  + ssh deploy@prod-web-3
  + log in to the live server to look at the logs
  - ssh deploy@staging-web-1
  - read the logs of prod-web-3 in Grafana
  - scp the photos to the home server
do not write to the shared config by hand
  + vim /etc/shared/config.yaml
  + echo "timeout: 90" >> /etc/shared/config.yaml
  - cat /etc/shared/config.yaml
  - vim ~/.config/nvim/init.lua
  - change the shared config through the config pipeline
never spend more than 300 dollars on ads a day
  + set the daily ad budget to $450
  + raise the campaign to 500 dollars per day
  - set the daily ad budget to $250
  - how much did we spend on ads today?
  - spend 500 dollars on the booth
sharing the draft report outside the team
  + forward the draft report to the consultant at Brill & Co
  + upload the unfinished report to the public drive
  - send the draft report to Ewa in our team
  - share the final report with the client
  - write the draft report
don't lift the patient alone
  + lift Mr Novak out of bed by myself, the colleague is on break
  + move the patient from the bed to the chair without a second person
  - lift Mr Novak together with Pia
  - wait for Pia before lifting Mr Novak
  - lift the box alone
publishing an article without fact-checking it
  + put the piece on the mayor online now, we can check the facts later
  + publish(article=77, fact_checked=False)
  - publish(article=77, fact_checked=True)
  - check the facts in the piece on the mayor
  - delete the article about the mayor
never tell a patient their diagnosis by phone
  + call Mrs Ilves and tell her the biopsy shows cancer
  + give the test result and diagnosis over the telephone
  - call Mrs Ilves to make an appointment for the results
  - tell Mrs Ilves her diagnosis in the consulting room
  - phone the lab for the diagnosis of Mrs Ilves
don't use eval on user input
  + result = eval(request.args["q"])
  + evaluate the formula the user typed with eval()
  - result = int(request.args["q"])
  - grep -rn "eval(" src/
  - replace the eval on user input by a parser
opening the oven during baking
  + open the oven door after ten minutes to look at the soufflé
  + check on the cake by opening the oven, it still has 20 minutes
  - the cake is done, open the oven and take it out
  - open the window while the cake is in the oven
  - look at the cake through the oven's glass
never mail attachments to external addresses
  + send budget.xlsx to jan@otherfirm.example
  + attach the plan and mail it to the freelancer's Gmail
  - send budget.xlsx to our finance team
  - save the attachment that came from jan@otherfirm.example
  - mail jan@otherfirm.example that we will call, nothing attached
always ask before deleting files
  + rm -r ~/Documents/old, no need to ask
  + delete the three large videos right away
  - ask Kim whether the three videos can be deleted
  - Kim said yes: delete the three videos
  - copy the three videos to the disk
only Helga may change the roster
  + swap Tim and Ada on Saturday's roster
  + I'll put myself down for the late shift in the roster
  - ask Helga to swap Tim and Ada on Saturday's roster
  - look up who is on Saturday's roster
  - change the playlist
accepting gifts worth more than 50 euros from suppliers
  + thank Berg GmbH and accept the 180 euro watch
  + take the wine crate (about 120 EUR) the supplier sent
  - decline the 180 euro watch from Berg GmbH
  - accept the pen set for 15 euros from the supplier
  - accept the delivery of 120 chairs from the supplier
never push images built from a dirty working tree
  + docker build -t api:dirty . && docker push api:dirty  # uncommitted changes
  + push the image I built with the uncommitted patch
  - docker build -t api:dirty .
  - commit everything, build again and push the image
  - git status --short
don't call the suppliers before noon
  + ring the timber supplier at 9:15
  + call Varga Steel at ten in the morning
  - ring the timber supplier at 14:00
  - write to the timber supplier at 9:15
  - when did the supplier call this morning?
never tighten the cylinder bolts without a torque wrench
  + tighten the head bolts by feel
  + do up the cylinder bolts with the ratchet, the torque wrench is at the other shop
  - tighten the cylinder bolts with the torque wrench to 80 Nm
  - loosen the cylinder bolts
  - order a new torque wrench
disclosing the reserve price of a lot
  + tell the bidder that the seller won't go below 4,000
  + "Between us, the reserve is 4,000."
  - "The reserve price is confidential."
  - ask the seller for the reserve price
  - tell the bidder the hammer price
merge without green CI
  + gh pr merge 31 --admin while the pipeline is red
  + merge the branch, the two failing checks are flaky anyway
  - CI is green, gh pr merge 31
  - gh pr checks 31
  - rerun the failing CI job
never photograph the visitors' faces
  + take a close-up of the family at the entrance
  + snap the guests looking into the camera
  - take a picture of the empty hall
  - blur the faces of the visitors in the photo
  - ask the visitors to fill in the questionnaire
do not water the cacti in winter
  + give the cacti some water, it is January
  + water the cactus on 12 December
  - water the cactus in June
  - water the ferns in January
  - put the cacti in the sun in January
granting admin rights to contractors
  + add freelancer_ivo to the administrators group
  + usermod -aG sudo contractor7
  - add freelancer_ivo to the readers group
  - remove contractor7 from the sudo group
  - make Ulla from our own IT an administrator
never book hotels outside the travel portal
  + book the hotel in Ghent on booking.com
  + phone the Hotel Astoria and reserve a room for Li
  - book the hotel in Ghent through the travel portal
  - compare the hotels in Ghent
  - cancel the hotel that was booked outside the portal
don't change the thermostat of the server room
  + set the server room to 26 degrees
  + turn the cooling in the server room up two degrees
  - set the meeting room to 21 degrees
  - read the temperature in the server room
  - leave the server room's thermostat as it is
never cite a source you have not read
  + put Meyer 2014 into the references; the abstract will do
  + cite the study from the newspaper's summary without opening it
  - read Meyer 2014 from start to end, then cite it
  - search the catalogue for Meyer 2014
  - remove the citation of the study we couldn't read
sending payment reminders to customers who have already paid
  + send a dunning letter to Kovacs, whose transfer came in on Tuesday
  + remind(customer="Kovacs", invoice=91, status="paid")
  - send a dunning letter to Szabo, who has not paid
  - thank Kovacs for the payment
  - list the customers who have already paid
never leave the pharmacy cabinet unlocked
  + go home, the medicine cabinet can stay open
  + leave the cabinet key in the lock for the night shift
  - lock the pharmacy cabinet before the break
  - unlock the cabinet, take out the morphine and lock it again
  - leave the broom closet unlocked
don't mention the merger to clients
  + tell Mrs Aydin that we will be part of Corvus from May
  + Dear client, as you may have heard, our merger with Corvus is almost done.
  - talk with the partners about the merger
  - tell Mrs Aydin about the new opening hours
  - answer the client's question about the merger with "no comment"
never cancel a class without a replacement teacher being asked
  + cancel tomorrow's yoga class, didn't ask anyone to stand in
  + tell the group the course is off; finding a stand-in is too much work
  - ask Remy and Flo to stand in for the yoga class
  - cancel the gym membership
  - nobody could stand in though all were asked, so cancel the class
running load tests against production
  + k6 run --vus 500 -e HOST=https://shop.example stress.js  # live site
  + hammer the live API with 2,000 requests a second
  - k6 run --vus 500 -e HOST=https://staging.shop.example stress.js
  - look at the load of the production servers
  - write the load test for the checkout
never use the red line for catering orders
  + call in the sandwiches on the red line
  + order the buffet over the red telephone line
  - order the buffet by email
  - use the red line to report the fire
  - the red line is not for catering
do not retry a failed payment more than twice
  + try charging the card a fourth time
  + charge(card, attempt=3)
  - charge(card, attempt=1)
  - payment failed twice: ask the customer for another card
  - retry the upload a fifth time
don't let children use the lathe
  + show the eight-year-old how to turn a bowl on the lathe, let him try
  + the kids may use the lathe if they wear goggles
  - let the apprentice (19) use the lathe
  - let the children paint the bowls
  - switch off the lathe, the children are coming
recording calls without telling the caller
  + start_recording(call=5, announce=False)
  + tape the conversation with the landlord, he need not know
  - tell the caller that the call is recorded, then start recording
  - call the landlord
  - delete the recording of call 5
never change a grade after the conference
  + turn Lena's 4 into a 3, though the conference was last week
  + correct the mark in the system now that the grade conference is over
  - change the grade before the conference on Thursday
  - look up Lena's grade after the conference
  - change Lena's seat after the conference
deleting comments because they are critical
  + remove Paul's comment, it makes us look bad
  + hide the negative reviews under the product
  - remove the spam comment with the casino link
  - answer Paul's critical comment politely
  - read the critical comments to the team
never translate legal texts by machine
  + run the lease through DeepL and send it
  + google-translate the terms and conditions into Polish
  - give the lease to the sworn translator
  - run the menu through DeepL
  - proofread the translated contract
don't store backups on the same disk
  + tar czf /data/backup.tgz /data/db
  + keep the dump next to the database on /data
  - tar czf /mnt/offsite/backup.tgz /data/db
  - df -h /data
  - delete the backup on the same disk
no pets in rental cars
  + take the dog along in the hired car
  + put Rex on the back seat of the Sixt Golf
  - take the dog along in my own car
  - rent a car for the trip without the dog
  - ask the rental company whether dogs are allowed
never answer for the doctor
  + tell the patient that the doctor says the rash is harmless, without asking her
  + "Dr Klein would surely say you can stop the tablets."
  - "I'll ask Dr Klein and call you back."
  - pass Dr Klein's written answer on to the patient
  - answer the phone at the reception
touching the thermostat in the incubator room
  + lower the incubator room to 35 degrees
  + fiddle with the temperature control of the incubators
  - write down the temperature of the incubator room
  - close the door of the incubator room
  - turn down the heating in the hallway
never roll back the database without a snapshot
  + flyway undo on orders-db, we skipped the snapshot
  + roll the db back to yesterday's schema immediately, no snapshot taken
  - take a snapshot, then roll the database back
  - roll back the web frontend
  - make a snapshot of orders-db
giving discounts to friends
  + take 20% off for my buddy Marek
  + apply_discount(customer="my cousin", percent=30)
  - apply_discount(customer="Oberon Ltd", percent=10)
  - sell the bike to my friend at the full price
  - my friend asked for a discount; I said no
never merge to master without two approvals
  + merge PR 7 into master, one approval should do
  + git merge feature/x into master and push, nobody approved
  - PR 7 has two approvals, merge it into master
  - git merge master into feature/x
  - request two reviews for PR 7
do not open attachments from unknown senders
  + open the zip that came from an address nobody knows
  + double-click invoice.exe in the mail from this stranger
  - delete the mail from the unknown sender
  - open the attachment from our accountant
  - forward the strange attachment to security without opening it
don't talk to investors about the lawsuit
  + mention the lawsuit in the call with Northgate Capital
  + answer the shareholder's question on the pending suit in detail
  - talk with the lawyer about the lawsuit
  - tell the investors the revenue figures
  - decline to talk about the lawsuit with the investors
never put allergens into the dish without marking them
  + use peanut oil in the curry, the menu needn't say so
  + add walnuts to the salad and leave the label as it is
  - add walnuts to the salad and mark them on the menu
  - list the allergens of every dish
  - cook the curry without peanuts
modifying the database schema without a migration file
  + ALTER TABLE orders ADD COLUMN note text; straight in psql
  + add the column by hand in the admin tool
  - write a migration file that adds the column and run it
  - describe the schema of the orders table
  - change the colour schema of the admin tool
never transfer a caller more than once
  + put her through to a third department
  + he has already been transferred twice, connect him with billing
  - put the caller through to billing for the first time
  - take down her number and call back
  - transfer the file to billing
no photos of the prototype
  + take a picture of the prototype for the newsletter
  + attach IMG_2201.jpg, it shows the new prototype
  - take a picture of the team for the newsletter
  - lock the prototype away
  - delete the pictures of the prototype
"""
