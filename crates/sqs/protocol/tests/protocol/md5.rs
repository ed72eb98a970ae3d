//! Sums of messages, compared with those that Amazon gave for the same messages (recorded in the
//! snapshots of LocalStack's tests), or that moto computes.

use bytes::Bytes;
use quelea_sqs_protocol::{MessageAttribute, md5_of_attributes, md5_of_body};

fn attribute(name: &str, data_type: &str, value: &'static [u8]) -> MessageAttribute {
    let value = Bytes::from_static(value);
    MessageAttribute { name: name.to_owned(), data_type: data_type.to_owned(), value }
}

#[test]
fn bodies_have_the_sums_of_their_bytes() {
    assert_eq!(md5_of_body(b""), "d41d8cd98f00b204e9800998ecf8427e");
    assert_eq!(md5_of_body(b"msg"), "6e2baaf3b97dbeef01c0043275f9a0e7");
}

#[test]
fn attributes_have_the_sums_that_amazon_gives() {
    let general = attribute("General", "String", b"Kenobi");
    let hello = attribute("Hello", "String", b"There");
    let help = attribute("Help.Me", "String", b"Me");
    let foo = attribute("Foo", "String", b"Bar");
    let cases: [(&[&MessageAttribute], &str); 5] = [
        (&[&general, &hello, &help], "4c360f3fdafd970e05fae2f149d997f5"),
        (&[&general, &hello], "fca026605781cb4126a1e9044df24232"),
        (&[&hello], "a311262e065454b75da111d535b8dacd"),
        (&[&hello, &help], "83fee93c1bcd8b9a5a923ffacdc636c7"),
        (&[&foo], "ae7155c6026991b6d54b11589678bf9c"),
    ];
    for (attributes, sum) in cases {
        assert_eq!(md5_of_attributes(attributes.iter().copied()).as_deref(), Some(sum));
    }
}

#[test]
fn labels_and_binary_values_count() {
    let city = attribute("City", "String", b"Any City & more=1+1");
    let picture = attribute("Picture", "Binary.png", b"\x00\xff\xfe+/=");
    let population = attribute("Population", "Number.int", b"1250800");
    let cases: [(&[&MessageAttribute], &str); 3] = [
        (&[&city, &picture, &population], "5ca45a6906bce49a32dc510c14edf3d0"),
        (&[&picture], "b7dbd3d9187286f8e7a20edbd7111b18"),
        (&[&population], "f9bd1a6822c8380bf078fa5d847ee56d"),
    ];
    for (attributes, sum) in cases {
        assert_eq!(md5_of_attributes(attributes.iter().copied()).as_deref(), Some(sum));
    }
}

#[test]
fn no_attributes_have_no_sum() {
    assert_eq!(md5_of_attributes([]), None);
}
