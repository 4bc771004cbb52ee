"""Which columns of an incidence table are the node and the hyperedge: headers of real exports, all right or asked."""

import pytest

from edhnn.io import guess_columns

ASKED = None
"""The names do not decide, so that the reader asks or examines the data."""

# header: node, hyperedge; the third word marks a guess that is made but must be confirmed
HEADERS = {
    # shops
    "InvoiceNo,StockCode,Description,Quantity,UnitPrice,InvoiceDate,Colour,Department": "StockCode InvoiceNo",
    "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country": "StockCode InvoiceNo asked",
    "Invoice,StockCode,Description,Quantity,InvoiceDate,Price,Customer ID,Country": "StockCode Invoice asked",
    "order_id,product_id,add_to_cart_order,reordered": "product_id order_id",
    "Order ID,Product ID,Sales": "Product ID Order ID",
    "order_id,order_item_id,product_id,seller_id,price": "product_id order_id asked",
    "BillNo,Itemname,Quantity,Date,Price,CustomerID,Country": "Itemname BillNo asked",
    "transaction_id,item": "item transaction_id",
    "Transaction,Item,date_time,period_day": "Item Transaction",
    "Member_number,Date,itemDescription": "itemDescription Member_number asked",
    "household_key,BASKET_ID,PRODUCT_ID,QUANTITY": "PRODUCT_ID BASKET_ID asked",
    "CUSTOMER_ID,PRODUCT_ID": "PRODUCT_ID CUSTOMER_ID",
    "cust_id,sku": "sku cust_id",
    "order_no,article_no": "article_no order_no",
    "OrderNumber,ProductKey,OrderQuantity": "ProductKey OrderNumber",
    "stockcode,invoiceno": "stockcode invoiceno",
    "receipt;ean;amount": "ean receipt",
    "basket,item": "item basket",
    # clicks and ratings
    "session_id,item_id": "item_id session_id",
    "SessionId,ItemId,Time": "ItemId SessionId",
    "timestamp,visitorid,event,itemid,transactionid": "itemid transactionid asked",
    "userId,movieId,rating,timestamp": "movieId userId",
    "UserID::MovieID::Rating::Timestamp": "MovieID UserID",
    "user_id,book_id,rating": "book_id user_id",
    "User-ID,ISBN,Book-Rating": "ISBN User-ID",
    "reviewerID,asin,overall": "asin reviewerID",
    "anime_id,user_id": "anime_id user_id",
    "playlist_id,track_id": "track_id playlist_id",
    "userID,artistID,weight": "artistID userID",
    "user_id,business_id,stars": ASKED,
    # people and their groups
    "user,group": "user group",
    "user_id,group_id": "user_id group_id",
    "member_id,committee": "member_id committee",
    "senator,committee": "senator committee",
    "legislator,bill": "legislator bill",
    "author,paper": "author paper",
    "Paper ID,Author Name": "Author Name Paper ID",
    "pub_id,author_id": ASKED,
    "actor_id,movie_id": "actor_id movie_id",
    "ActorName,FilmTitle": "ActorName FilmTitle",
    "EventID,AttendeeID": "AttendeeID EventID",
    "board,director": "director board",
    "CompanyNumber,PersonId": "PersonId CompanyNumber",
    "employee,project": "employee project",
    "student_id,course_code": "student_id course_code",
    "player,team": "player team",
    "email_id,recipient": "recipient email_id",
    "thread_id,user_id": "user_id thread_id",
    # nature
    "gene,pathway": "gene pathway",
    "ComplexID,Protein": "Protein ComplexID",
    "recipe_id,ingredient": "ingredient recipe_id",
    "patient_id,icd_code": ASKED,
    "subject_id,drug": "drug subject_id",
    "disease,gene": ASKED,
    # mathematics
    "node,hyperedge": "node hyperedge",
    "hyperedge_id,node_id,w": "node_id hyperedge_id",
    "e,v": "v e",
    "vertex,edge": "vertex edge",
    "cell,net": "cell net",
    # nothing to go by
    "doc,word": ASKED,
    "movie,tag": ASKED,
    "source,target": ASKED,
    "nconst,tconst": ASKED,
    "a,b": ASKED,
    "x,y,z": ASKED,
}


@pytest.mark.parametrize("header", HEADERS)
def test_the_columns_of_real_headers_are_right_or_asked(header):
    mark = next((mark for mark in ("::", ";") if mark in header), ",")
    guess = guess_columns(header.split(mark))
    expected = HEADERS[header]
    if expected is None:
        assert not guess.certain
        return
    assert expected == f"{guess.node} {guess.edge}{'' if guess.certain else ' asked'}"


def test_the_order_of_the_columns_does_not_matter():
    assert len(HEADERS) >= 50
    for header, expected in HEADERS.items():
        if expected is not None:
            turned = guess_columns(header.replace("::", ",").replace(";", ",").split(",")[::-1])
            assert f"{turned.node} {turned.edge}{'' if turned.certain else ' asked'}" == expected


@pytest.mark.parametrize(
    "spelling", ["{}_id", "{} id", "{}.ID", "{}No", "{}_number", "{}Code", "{}-key", "{}s", "{}", "{} #", "{}_uuid"]
)
@pytest.mark.parametrize("case", [str.lower, str.upper, str.title])
def test_every_spelling_of_a_name(spelling, case):
    columns = [case(spelling.format(word)) for word in ("order", "product")]
    assert tuple(guess_columns(columns)) == (columns[1], columns[0], None, True)


def test_what_is_known_decides_the_rest():
    assert tuple(guess_columns(["a", "b"], node="b")) == ("b", "a", None, True)
    assert tuple(guess_columns(["a", "b", "c"], edge="b")) == (None, "b", None, False)
    assert tuple(guess_columns(["price", "order", "c"], node="c")) == ("c", "order", None, True)
    assert tuple(guess_columns(["word", "doc"], node_ids="doc")) == ("doc", "word", None, True)
    assert guess_columns(["word", "doc"], node_ids="id").certain is False
