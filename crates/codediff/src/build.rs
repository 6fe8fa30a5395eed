//! A kernel with its modules.

use crate::error::CodeError;
use crate::image::{Image, Kind, Location, plain};
use crate::{module, vmlinux};
use std::collections::BTreeMap;

/// A kernel and its modules.
#[derive(Debug)]
pub struct Build {
    /// The kernel, then its modules.
    images: Vec<Image>,
    /// Symbols of all images by name: image and address.
    names: BTreeMap<String, Vec<(usize, u64)>>,
}

impl Build {
    /// Loads a kernel: the content of a bzImage after decompression, which is `vmlinux` without its
    /// symbol table, followed by the list of relocations. `name` is for errors.
    ///
    /// # Errors
    /// If it is not a kernel for x86-64, or contains no symbols or relocations.
    pub fn new(name: &str, vmlinux: &[u8]) -> Result<Build, CodeError> {
        let mut build = Build { images: Vec::new(), names: BTreeMap::new() };
        build.push(vmlinux::load(name, vmlinux)?);
        Ok(build)
    }

    /// Adds a module: the content of its `.ko` file after decompression.
    ///
    /// # Errors
    /// If it is not a module for x86-64, or contains a relocation of unknown type.
    pub fn add_module(&mut self, name: &str, content: &[u8]) -> Result<(), CodeError> {
        let number = self.images.len() as u64 - 1;
        self.push(module::load(name, content, number)?);
        Ok(())
    }

    /// A build of one image.
    #[cfg(test)]
    pub(crate) fn of(image: Image) -> Build {
        let mut build = Build { images: Vec::new(), names: BTreeMap::new() };
        build.push(image);
        build
    }

    #[cfg(test)]
    pub(crate) fn images_mut(&mut self) -> &mut [Image] {
        &mut self.images
    }

    fn push(&mut self, image: Image) {
        let number = self.images.len();
        for symbol in &image.symbols {
            let places = self.names.entry(plain(&symbol.name).to_owned()).or_default();
            places.push((number, symbol.address));
        }
        self.images.push(image);
    }

    /// Returns the functions of a name, without suffixes of the compiler: static functions of
    /// several files can share a name, and a function can consist of several parts.
    pub(crate) fn functions(&self, name: &str) -> Vec<Location<'_>> {
        let places = self.names.get(name).map_or(&[][..], Vec::as_slice);
        let found = places.iter().filter_map(|(image, address)| {
            let location = self.images[*image].locate(*address)?;
            (location.section.kind == Kind::Text).then_some(location)
        });
        found.collect()
    }

    /// Replaces a reference of a module to another image by a reference to the variable or function
    /// itself, if exactly one image exports the name.
    pub(crate) fn resolve<'a>(&'a self, location: Location<'a>) -> Location<'a> {
        if location.section.kind != Kind::Undefined {
            return location;
        }
        let places = self.names.get(location.symbol).map_or(&[][..], Vec::as_slice);
        let mut found = places.iter().filter_map(|(image, address)| {
            let found = self.images[*image].locate(*address)?;
            (found.section.kind != Kind::Undefined).then_some(found)
        });
        match (found.next(), found.next()) {
            (Some(found), None) => {
                let address = found.address.wrapping_add(location.offset);
                Location { address, offset: location.offset, ..found }
            }
            _ => location,
        }
    }
}
