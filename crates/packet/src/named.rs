//! Enums with named values, defined in one place.
//!
//! Files, command lines, stores and reports contain the name of a value, so [`crate::named!`]
//! generates everything from one list: `name`, `ALL`, `NAMES`, [`Display`](std::fmt::Display),
//! [`FromStr`](std::str::FromStr) and serde's two traits.

/// A type declared by the macro [`crate::named!`].
pub trait Named: Copy + PartialEq + 'static {
    /// All values with names and descriptions, in order of declaration.
    const TABLE: &'static [(Self, &'static str, &'static str)];

    /// Returns the value of this name.
    fn from_name(name: &str) -> Option<Self> {
        Self::TABLE.iter().find(|(_, known, _)| *known == name).map(|&(value, ..)| value)
    }
}

/// Error: no value has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// The unknown name.
    pub name: String,
    /// The known names.
    pub known: &'static [&'static str],
}

impl std::fmt::Display for UnknownName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\" is none of {}", self.name, self.known.join(", "))
    }
}

impl std::error::Error for UnknownName {}

/// Declares an enum of values with names, `Variant = "name"`, each with a description;
/// `enum Way default Slow` has a default.
#[macro_export]
macro_rules! named {
    (
        $(#[$meta:meta])*
        $vis:vis enum $type:ident $(default $default:ident)? {
            $($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $type {
            $($(#[doc = $doc])+ $variant,)+
        }

        $(impl Default for $type {
            fn default() -> Self {
                $type::$default
            }
        })?

        impl $type {
            /// All values, in order of declaration.
            $vis const ALL: [$type; [$($name),+].len()] = [$($type::$variant),+];
            /// The names, in the same order.
            $vis const NAMES: &'static [&'static str] = &[$($name),+];

            /// Returns the name used in files, on command lines and in reports.
            $vis const fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)+ }
            }
        }

        impl $crate::named::Named for $type {
            const TABLE: &'static [(Self, &'static str, &'static str)] =
                &[$(($type::$variant, $name, concat!($($doc),+)),)+];
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl ::std::str::FromStr for $type {
            type Err = $crate::named::UnknownName;

            fn from_str(name: &str) -> Result<Self, $crate::named::UnknownName> {
                let unknown = || $crate::named::UnknownName {
                    name: name.to_owned(),
                    known: Self::NAMES,
                };
                <Self as $crate::named::Named>::from_name(name).ok_or_else(unknown)
            }
        }

        impl $crate::serde::Serialize for $type {
            fn serialize<S: $crate::serde::Serializer>(
                &self,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> $crate::serde::Deserialize<'de> for $type {
            fn deserialize<D: $crate::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Self, D::Error> {
                let name = <::std::borrow::Cow<'de, str> as $crate::serde::Deserialize>::deserialize(
                    deserializer,
                )?;
                <Self as $crate::named::Named>::from_name(&name).ok_or_else(|| {
                    $crate::serde::de::Error::unknown_variant(&name, Self::NAMES)
                })
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::Named;

    named! {
        /// Ways to test.
        enum Way default Chance {
            /// By name,
            /// and on.
            ByName = "by-name",
            /// By chance.
            Chance = "chance",
        }
    }

    #[test]
    fn names_survive_a_round_trip() {
        assert_eq!(Way::ALL, [Way::ByName, Way::Chance]);
        assert_eq!(Way::default(), Way::Chance);
        for way in Way::ALL {
            assert_eq!(way.name().parse(), Ok(way));
            assert_eq!(serde_json::to_string(&way).expect("JSON"), format!("\"{way}\""));
            assert_eq!(serde_json::from_value::<Way>(way.name().into()).expect("a way"), way);
        }
        assert_eq!(format!("{:>7}|", Way::Chance), " chance|");
        assert_eq!(Way::TABLE[0].2.trim(), "By name, and on.");
    }

    #[test]
    fn unknown_name_error_lists_known_names() {
        let error = "Chance".parse::<Way>().expect_err("names are exact");
        assert_eq!(error.to_string(), "\"Chance\" is none of by-name, chance");
        let error = serde_json::from_str::<Way>("\"luck\"").expect_err("no such way");
        assert!(error.to_string().starts_with("unknown variant `luck`"), "{error}");
    }
}
