//! Addresses of pages: a path and a query (RFC 3986), decoded; and text escaped for pages.

/// The target of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Address {
    /// The parts of the path.
    pub(super) parts: Vec<String>,
    /// Names and values after the question mark, in order.
    pub(super) query: Vec<(String, String)>,
}

impl Address {
    /// Parses the target of a request line. Invalid escapes are kept literally: no page has such a
    /// name.
    pub(super) fn parse(url: &str) -> Address {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let parts = path.split('/').filter(|part| !part.is_empty());
        let query = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let plain = |text: &str| decoded(&text.replace('+', " "));
            (plain(name), plain(value))
        });
        Address { parts: parts.map(decoded).collect(), query: query.collect() }
    }

    /// The value of this name, if it is present and not empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(given, value)| given == name && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }

    /// The path as written, without the query.
    pub(super) fn path_encoded(&self) -> String {
        let parts: Vec<String> = self.parts.iter().map(|part| encoded(part)).collect();
        format!("/{}", parts.join("/"))
    }
}

/// A text encoded as a part of a path or a value of a query.
pub(super) fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded += &format!("%{byte:02X}"),
        }
        encoded
    })
}

/// Text escaped for HTML.
pub(super) fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let byte = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        plain.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_queries_are_decoded_exactly_once() {
        let address = Address::parse("/s/a%2Fb/c%20d?x=1&y=a+b%26c&z&x=2");
        assert_eq!(address.parts, ["s", "a/b", "c d"]);
        assert_eq!((address.get("x"), address.get("y")), (Some("1"), Some("a b&c")));
        assert_eq!((address.get("z"), address.get("w")), (None, None));
        assert_eq!(address.path_encoded(), "/s/a%2Fb/c%20d");
        assert_eq!(Address::parse("/%2541").parts, ["%41"]);
    }

    #[test]
    fn invalid_escapes_are_kept_literally() {
        for text in ["%", "%4", "%zz", "a%+1", "%é"] {
            assert_eq!(decoded(text), text);
        }
        assert_eq!(Address::parse("").path_encoded(), "/");
    }

    #[test]
    fn decoding_reverses_encoding() {
        for text in ["none, inet", "a/b?c=d&e#f", "é %41", ""] {
            assert_eq!(decoded(&encoded(text)), text);
        }
    }
}
