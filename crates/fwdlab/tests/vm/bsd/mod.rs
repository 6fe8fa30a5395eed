//! Guests with FreeBSD: the slowest tests, which start first because tests run in the order of
//! their names.

mod count;
mod guest;
mod lab;
