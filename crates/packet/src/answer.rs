//! Answers to received packets.

/// Length of an Ethernet header.
const ETHERNET: usize = 14;

/// Returns the answer to an untagged UDP packet over IPv4 without options or IPv6 without extension
/// headers: addresses and ports are swapped, so checksums stay valid. `None` for other frames.
pub fn answer(frame: &[u8], source_mac: [u8; 6], destination_mac: [u8; 6]) -> Option<Vec<u8>> {
    let (addresses, length, udp) = match frame.get(12..ETHERNET)? {
        [0x08, 0x00] if *frame.get(14)? == 0x45 && *frame.get(23)? == 17 => (26, 4, 34),
        [0x86, 0xdd] if *frame.get(20)? == 17 => (22, 16, 54),
        _ => return None,
    };
    let mut answer = frame.to_vec();
    answer[..6].copy_from_slice(&destination_mac);
    answer[6..12].copy_from_slice(&source_mac);
    for (at, length) in [(addresses, length), (udp, 2)] {
        let (from, to) = answer.get_mut(at..at + 2 * length)?.split_at_mut(length);
        from.swap_with_slice(to);
    }
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Family, Flows, FrameWriter, Phase, Stream, Template};

    #[test]
    fn answers_equal_the_other_direction_of_the_template() {
        let (here, there) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        for family in [Family::Inet, Family::Inet6] {
            let flows = Flows { sources: 1, destinations: 1 };
            let template = Template::new(&Stream::new(family, 84, flows), 7, here, there);
            let frame = |template: Template| {
                let mut writer = FrameWriter::new(template, 0);
                let mut frame = vec![0; writer.frame_length()];
                writer.prepare(&mut frame);
                writer.write_next(&mut frame, Phase::Window, 0);
                frame
            };
            let answers = template.answers(there, here);
            let sent = frame(template);
            assert_eq!(answer(&sent, there, here), Some(frame(answers)), "{family}");
            assert_eq!(answer(&sent[..30], there, here), None);
            let mut tagged = sent;
            tagged[12..14].copy_from_slice(&[0x81, 0x00]);
            assert_eq!(answer(&tagged, there, here), None);
        }
    }
}
