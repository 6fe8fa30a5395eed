//! Who may look: on loopback everybody on this machine, elsewhere whoever has the token.

use super::address::Address;
use std::net::IpAddr;

/// Bytes of a token, of the kernel's random numbers.
const TOKEN: usize = 16;
/// Name of token and cookie.
const NAME: &str = "token";

/// Who may look.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// Asked of everyone; none on loopback.
    token: Option<String>,
}

/// What is said to a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Admitted,
    /// Came with the token in its address: it gets this cookie instead.
    Welcome(String),
    Refused(&'static str),
}

impl Access {
    /// The rule for a server at this address.
    ///
    /// # Errors
    /// When the kernel gives no random numbers.
    pub(crate) fn at(address: IpAddr) -> std::io::Result<Access> {
        if address.is_loopback() {
            return Ok(Access { token: None });
        }
        let mut bytes = [0; TOKEN];
        // Of every Unix, and of a server that has started long after the machine.
        std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
        Ok(Access { token: Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect()) })
    }

    /// What stands behind the address that is shown to the user.
    pub(crate) fn query(&self) -> String {
        self.token.as_ref().map_or(String::new(), |token| format!("?{NAME}={token}"))
    }

    /// Whether this request is answered.
    pub(super) fn admits(
        &self,
        host: Option<String>,
        cookies: Option<String>,
        address: &Address,
    ) -> Verdict {
        let Some(token) = &self.token else {
            // A page from elsewhere whose name was made to mean this machine must not read:
            // its requests carry that name.
            return match host.as_deref().is_none_or(names_loopback) {
                true => Verdict::Admitted,
                false => Verdict::Refused("ask by the address 127.0.0.1, [::1] or localhost"),
            };
        };
        let cookies = cookies.unwrap_or_default();
        let cookie = cookies.split(';').find_map(|pair| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == NAME).then_some(value)
        });
        if cookie.is_some_and(|given| is_same(given, token)) {
            return Verdict::Admitted;
        }
        match address.get(NAME).is_some_and(|given| is_same(given, token)) {
            true => Verdict::Welcome(format!("{NAME}={token}; HttpOnly; SameSite=Strict; Path=/")),
            false => Verdict::Refused("the address with the token is what fwdlab serve printed"),
        }
    }
}

/// True for a Host (RFC 9110, 7.2) that is this machine by its own names.
fn names_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => host.split(':').next().unwrap_or(host),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Takes the same time whatever the difference is.
fn is_same(given: &str, wanted: &str) -> bool {
    let (given, wanted) = (given.as_bytes(), wanted.as_bytes());
    let differing = given.iter().zip(wanted).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == wanted.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(access: &Access, host: &str, cookie: Option<&str>, url: &str) -> Verdict {
        access.admits(Some(host.into()), cookie.map(str::to_owned), &Address::parse(url))
    }

    #[test]
    fn on_loopback_a_foreign_name_is_refused() {
        let access = Access::at([127, 0, 0, 1].into()).unwrap();
        assert_eq!(access.query(), "");
        for host in ["127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:80", "127.1.2.3"] {
            assert_eq!(asked(&access, host, None, "/"), Verdict::Admitted, "{host}");
        }
        for host in ["evil.example:8080", "127.0.0.1.evil.example", "10.0.0.1", "[fe80::1]"] {
            assert!(matches!(asked(&access, host, None, "/"), Verdict::Refused(_)), "{host}");
        }
    }

    #[test]
    fn elsewhere_only_the_token_admits() {
        let access = Access::at([0, 0, 0, 0].into()).unwrap();
        let token = access.query().strip_prefix("?token=").unwrap().to_owned();
        assert_eq!(token.len(), 32);
        assert_ne!(access.query(), Access::at([0, 0, 0, 0].into()).unwrap().query());
        let wrong = "0".repeat(32);
        for url in ["/", "/?token=", &format!("/?token={wrong}"), "/?token=a"] {
            assert!(matches!(asked(&access, "h", None, url), Verdict::Refused(_)), "{url}");
        }
        let Verdict::Welcome(cookie) = asked(&access, "h", None, &format!("/{}", access.query()))
        else {
            panic!("not admitted")
        };
        let cookie = cookie.split(';').next().unwrap();
        assert_eq!(asked(&access, "h", Some(cookie), "/"), Verdict::Admitted);
        let two = format!("a=b; {cookie}");
        assert_eq!(asked(&access, "h", Some(&two), "/"), Verdict::Admitted);
        let wrong = format!("token={wrong}");
        assert!(matches!(asked(&access, "h", Some(&wrong), "/"), Verdict::Refused(_)));
    }
}
