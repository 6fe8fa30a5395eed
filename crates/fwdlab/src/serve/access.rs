//! Access control: on loopback for every user of this machine, elsewhere for holders of the token.

use super::address::Address;
use std::net::IpAddr;

/// Length of a token in bytes, from the kernel's random numbers.
const TOKEN: usize = 16;
/// Name of token and cookie.
const NAME: &str = "token";
/// Refusal of a request by another name than loopback's.
const FOREIGN: &str = "ask by the address 127.0.0.1, [::1] or localhost";

/// The access rule of a server.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// Required of every viewer; `None` on loopback.
    token: Option<String>,
}

/// The decision about a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Admitted,
    /// The address contains the token: the viewer gets this cookie instead.
    Welcome(String),
    Refused(&'static str),
}

impl Access {
    /// The rule for a server at this address.
    ///
    /// # Errors
    /// Fails if the kernel provides no random numbers.
    pub(crate) fn at(address: IpAddr) -> std::io::Result<Access> {
        if address.is_loopback() {
            return Ok(Access { token: None });
        }
        let mut bytes = [0; TOKEN];
        // Exists on every Unix; the server starts long after the machine has booted, so it is
        // seeded.
        std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
        Ok(Access { token: Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect()) })
    }

    /// The query of the address that is shown to the user.
    pub(crate) fn query(&self) -> String {
        self.token.as_ref().map_or(String::new(), |token| format!("?{NAME}={token}"))
    }

    /// The path below which clients of an API send their requests, e.g. `/TOKEN`; empty on
    /// loopback.
    pub(crate) fn prefix(&self) -> String {
        self.token.as_ref().map_or(String::new(), |token| format!("/{token}"))
    }

    /// The path of an API request below [`Access::prefix`], without its query.
    ///
    /// # Errors
    /// The reason for refusing the request.
    pub(crate) fn path_of(&self, host: Option<String>, url: &str) -> Result<String, &'static str> {
        let path = url.split('?').next().unwrap_or_default();
        let Some(token) = &self.token else {
            return match host.as_deref().is_none_or(names_loopback) {
                true => Ok(path.to_owned()),
                false => Err(FOREIGN),
            };
        };
        let (given, rest) = path
            .strip_prefix('/')
            .unwrap_or(path)
            .split_at_checked(token.len())
            .unwrap_or_default();
        match is_same(given, token) {
            true => Ok(rest.to_owned()),
            false => Err("use the URL with the token that fwdlab printed"),
        }
    }

    /// Decides about a request.
    pub(super) fn admits(
        &self,
        host: Option<String>,
        cookies: Option<String>,
        address: &Address,
    ) -> Verdict {
        let Some(token) = &self.token else {
            // DNS rebinding: a foreign page whose name resolves to this machine must not read; its
            // requests carry that name.
            return match host.as_deref().is_none_or(names_loopback) {
                true => Verdict::Admitted,
                false => Verdict::Refused(FOREIGN),
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

/// True for a Host (RFC 9110, section 7.2) that names this machine.
fn names_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => host.split(':').next().unwrap_or(host),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Compares in constant time.
fn is_same(given: &str, expected: &str) -> bool {
    let (given, expected) = (given.as_bytes(), expected.as_bytes());
    let differing = given.iter().zip(expected).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == expected.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(access: &Access, host: &str, cookie: Option<&str>, url: &str) -> Verdict {
        access.admits(Some(host.into()), cookie.map(str::to_owned), &Address::parse(url))
    }

    #[test]
    fn loopback_server_refuses_a_foreign_host() {
        let access = Access::at([127, 0, 0, 1].into()).unwrap();
        assert_eq!(access.query(), "");
        for host in ["127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:80", "127.1.2.3"] {
            assert_eq!(request(&access, host, None, "/"), Verdict::Admitted, "{host}");
        }
        for host in ["evil.example:8080", "127.0.0.1.evil.example", "10.0.0.1", "[fe80::1]"] {
            assert!(matches!(request(&access, host, None, "/"), Verdict::Refused(_)), "{host}");
        }
    }

    #[test]
    fn api_requests_are_below_the_token() {
        let public = Access::at([0, 0, 0, 0].into()).unwrap();
        let prefix = public.prefix();
        let path = |url: &str| public.path_of(Some("10.0.0.1".into()), url);
        assert_eq!(path(&format!("{prefix}/config?x=1")).as_deref(), Ok("/config"));
        for url in ["/config", "", "/é", "//config", &format!("/{}/config", "0".repeat(32))] {
            assert!(path(url).is_err(), "{url}");
        }
        let local = Access::at([127, 0, 0, 1].into()).unwrap();
        let path = |host: &str| local.path_of(Some(host.into()), "/config");
        assert_eq!((local.prefix().as_str(), path("localhost:1").as_deref()), ("", Ok("/config")));
        assert!(path("evil.example").is_err());
    }

    #[test]
    fn public_server_admits_only_the_token() {
        let access = Access::at([0, 0, 0, 0].into()).unwrap();
        let token = access.query().strip_prefix("?token=").unwrap().to_owned();
        assert_eq!(token.len(), 32);
        assert_ne!(access.query(), Access::at([0, 0, 0, 0].into()).unwrap().query());
        let wrong = "0".repeat(32);
        for url in ["/", "/?token=", &format!("/?token={wrong}"), "/?token=a"] {
            assert!(matches!(request(&access, "h", None, url), Verdict::Refused(_)), "{url}");
        }
        let Verdict::Welcome(cookie) = request(&access, "h", None, &format!("/{}", access.query()))
        else {
            panic!("not admitted")
        };
        let cookie = cookie.split(';').next().unwrap();
        assert_eq!(request(&access, "h", Some(cookie), "/"), Verdict::Admitted);
        let two = format!("a=b; {cookie}");
        assert_eq!(request(&access, "h", Some(&two), "/"), Verdict::Admitted);
        let wrong = format!("token={wrong}");
        assert!(matches!(request(&access, "h", Some(&wrong), "/"), Verdict::Refused(_)));
    }
}
