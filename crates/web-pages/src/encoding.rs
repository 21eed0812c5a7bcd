//! `Accept-Encoding` (RFC 9110 §12.5.3).

/// Whether a client takes an encoding, by its name or by `*`. What it names counts before `*`.
pub(crate) fn takes(accepted: &str, encoding: &str) -> bool {
    let (mut named, mut any) = (None, None);
    for item in accepted.split(',') {
        let mut parts = item.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let taken = parts.all(|part| weight(part) != Some(false));
        if name.eq_ignore_ascii_case(encoding) {
            named = Some(taken);
        } else if name == "*" {
            any = Some(taken);
        }
    }
    named.or(any).unwrap_or(false)
}

/// Whether a parameter is a weight above zero. `None`: it is another parameter. What is no number does not count as one above zero.
fn weight(part: &str) -> Option<bool> {
    let (name, value) = part.split_once('=')?;
    let is_weight = name.trim().eq_ignore_ascii_case("q");
    is_weight.then(|| value.trim().parse::<f32>().is_ok_and(|weight| weight > 0.0))
}
