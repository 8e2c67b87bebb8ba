//! Texts of logical types: they are read strictly, and printed so that they read back.

use super::composite::Parts;
use super::unit::Unit;
use core::fmt;
use std::io::Write as _;

/// Maximum number of DNA bases in a number.
pub(super) const BASES_MAX: usize = 61;

/// The part of a logical type on which its texts depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// A date, in days.
    Days,
    /// A date, in milliseconds.
    Date,
    /// A time of the day.
    Time(Unit),
    /// A date and a time; if true, it is an instant, and is printed in UTC.
    Timestamp(Unit, bool),
    /// A length of time, in seconds.
    Duration(Unit),
    /// A decimal: the number of digits in all, and of those after the point.
    Decimal(u8, i8),
    /// True or false.
    Boolean,
    /// 16 bytes.
    Uuid,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// An address of either family.
    Ip,
    /// A network of addresses of either family, such as `192.0.2.0/24`, or one address: its first or, if true, its
    /// last address.
    Network(bool),
    /// DNA bases; if true, a sequence and its reverse complement are one, the smaller.
    Bases(bool),
    /// Hexadecimal digits of a byte string.
    Hex,
    /// The first digits, so many, of a text of hexadecimal digits.
    Digits(u32),
    /// A text, of which there is the hash, turned by so many bytes.
    Hash(u8),
    /// The first letters of a text, so many.
    Letters(u32),
    /// The parts of a composite key, separated by commas.
    Composite(Parts),
}

/// The reason why a text is not a valid word of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextError {
    /// The text does not have the right form.
    Form,
    /// The text has more digits after the point than the type.
    Finer,
    /// The value is outside the range of the type.
    Range,
    /// The text has no zone, but the type requires one.
    NoZone,
    /// The text has a zone, but the type has none.
    Zone,
    /// The address is of the other family.
    Family,
    /// The network has bits set behind its length.
    Host,
    /// The number of hexadecimal digits is odd.
    Odd,
    /// The text has too few digits.
    Short,
    /// The text is too long.
    Long,
    /// The byte string has another length than this one.
    Width(usize),
    /// The key has another number of parts.
    Parts,
}

const DAY_SECONDS: i128 = 86_400;

impl Form {
    /// Reads a text as the word of a signed number. [`Form::element`] reads all types.
    ///
    /// # Errors
    /// [`TextError`], which says why the text is not valid; always [`TextError::Form`] for types whose words
    /// are not signed numbers.
    pub fn read(self, text: &[u8]) -> Result<i64, TextError> {
        let word = match self {
            Self::Days => {
                let (days, rest) = date(text).ok_or(TextError::Form)?;
                let days = i32::try_from(days).map_err(|_| TextError::Range)?;
                return if rest.is_empty() { Ok(days.into()) } else { Err(TextError::Form) };
            }
            // Milliseconds that are not whole days are not a date, but have a text.
            Self::Date => moment(text, Unit::Millisecond, None)?,
            Self::Timestamp(unit, is_zoned) => moment(text, unit, Some(is_zoned))?,
            Self::Time(unit) => {
                let (sign, digits) = signed(text);
                let (seconds, fraction, rest) = clock(digits, sign.is_some()).ok_or(TextError::Form)?;
                if !rest.is_empty() {
                    return Err(TextError::Form);
                }
                let word = ticks(seconds, fraction, unit)?;
                if sign == Some(true) { -word } else { word }
            }
            Self::Duration(unit) => {
                let (sign, digits) = signed(text);
                let (number, unit_digits) = match digits {
                    [number @ .., b'm', b's'] => (number, 3),
                    [number @ .., b'u', b's'] => (number, 6),
                    [number @ .., b'n', b's'] => (number, 9),
                    [number @ .., b's'] => (number, 0),
                    _ => return Err(TextError::Form),
                };
                let word = scaled(number, i32::try_from(unit.digits()).unwrap_or(0) - unit_digits)?;
                if sign == Some(true) { -word } else { word }
            }
            Self::Decimal(_, scale) => {
                let (sign, digits) = signed(text);
                let word = scaled(digits, scale.into())?;
                if sign == Some(true) { -word } else { word }
            }
            Self::Uuid | Self::Ipv4 | Self::Ipv6 | Self::Ip | Self::Bases(_) => return Err(TextError::Form),
            Self::Boolean | Self::Hex | Self::Digits(_) | Self::Network(_) => return Err(TextError::Form),
            Self::Hash(_) | Self::Letters(_) | Self::Composite(_) => return Err(TextError::Form),
        };
        i64::try_from(word).map_err(|_| TextError::Range)
    }

    /// Appends the text of the word of a signed number; of other types, its digits.
    pub fn put(self, word: i64, out: &mut Vec<u8>) {
        match self {
            Self::Days => put_date(word, out),
            Self::Date | Self::Timestamp(..) => {
                let (unit, is_zoned) = match self {
                    Self::Timestamp(unit, is_zoned) => (unit, is_zoned),
                    _ => (Unit::Millisecond, false),
                };
                let per_day = 86_400 * unit.per_second();
                let (days, ticks) = (word.div_euclid(per_day), word.rem_euclid(per_day));
                put_date(days, out);
                if self == Self::Date && ticks == 0 {
                    return;
                }
                out.push(b'T');
                put_clock(ticks.unsigned_abs(), unit, out);
                if is_zoned {
                    out.push(b'Z');
                }
            }
            Self::Time(unit) => {
                let in_day = (0..86_400_i128 * i128::from(unit.per_second())).contains(&i128::from(word));
                if !in_day {
                    out.push(if word < 0 { b'-' } else { b'+' });
                }
                put_clock(word.unsigned_abs(), unit, out);
            }
            Self::Duration(unit) => {
                if word < 0 {
                    out.push(b'-');
                }
                let per_second = unit.per_second().unsigned_abs();
                let _ = write!(out, "{}", word.unsigned_abs() / per_second);
                put_fraction(word.unsigned_abs() % per_second, unit, out);
                out.push(b's');
            }
            Self::Decimal(_, scale) => put_decimal(word, scale, out),
            Self::Boolean
            | Self::Uuid
            | Self::Ipv4
            | Self::Ipv6
            | Self::Ip
            | Self::Bases(_)
            | Self::Hex
            | Self::Digits(_)
            | Self::Network(_)
            | Self::Hash(_)
            | Self::Letters(_)
            | Self::Composite(_) => {
                let _ = write!(out, "{word}");
            }
        }
    }

    /// Returns what a text of this form is called in messages.
    #[must_use]
    pub fn noun(self) -> String {
        match self {
            Self::Days | Self::Date => "date".to_owned(),
            Self::Time(unit) => format!("time[{}]", unit.name()),
            Self::Timestamp(unit, false) => format!("timestamp[{}]", unit.name()),
            Self::Timestamp(unit, true) => format!("timestamp[{}] with a zone", unit.name()),
            Self::Duration(unit) => format!("duration[{}]", unit.name()),
            Self::Decimal(precision, scale) => format!("decimal({precision},{scale})"),
            Self::Boolean => "boolean".to_owned(),
            Self::Uuid => "uuid".to_owned(),
            Self::Ipv4 => "IPv4 address".to_owned(),
            Self::Ipv6 => "IPv6 address".to_owned(),
            Self::Ip => "IP address".to_owned(),
            Self::Network(_) => "network".to_owned(),
            Self::Bases(_) => "DNA sequence".to_owned(),
            Self::Hex => "text of hexadecimal digits".to_owned(),
            Self::Digits(count) => format!("text of {count} hexadecimal digits"),
            Self::Hash(_) | Self::Letters(_) => "text".to_owned(),
            Self::Composite(parts) => parts.noun(),
        }
    }

    /// Reports whether a word has at most the digits of its decimal; true for all other forms.
    #[must_use]
    pub const fn holds(self, word: i64) -> bool {
        match self {
            Self::Decimal(precision, _) => match 10_u64.checked_pow(precision as u32) {
                Some(power) => word.unsigned_abs() < power,
                None => true,
            },
            _ => true,
        }
    }

    /// Returns an example of a valid text, for messages.
    #[must_use]
    pub fn example(self) -> String {
        match self {
            Self::Composite(parts) => parts.example(),
            of_one => of_one.example_of_one().to_owned(),
        }
    }

    /// Reports whether texts are taken as they are: with blanks around them, and also if they are empty.
    #[must_use]
    pub const fn is_verbatim(self) -> bool {
        matches!(self, Self::Hash(_) | Self::Letters(_))
    }

    /// Returns an example of a text that is not of several parts.
    pub(super) const fn example_of_one(self) -> &'static str {
        match self {
            Self::Days | Self::Date => "2024-01-01",
            Self::Time(Unit::Second) => "12:00:00",
            Self::Time(_) => "12:00:00.5",
            Self::Timestamp(_, true) => "2024-01-01T12:00:00Z",
            Self::Timestamp(_, false) => "2024-01-01T12:00:00",
            Self::Duration(_) => "90s",
            Self::Decimal(_, 2) => "7675.00",
            Self::Decimal(_, scale) if scale <= 0 => "7675",
            Self::Decimal(..) => "7675.0",
            Self::Boolean => "true",
            Self::Uuid => "01234567-89ab-cdef-0123-456789abcdef",
            Self::Ipv4 => "192.0.2.1",
            Self::Ipv6 => "2001:db8::1",
            Self::Ip => "192.0.2.1 or 2001:db8::1",
            Self::Network(_) => "192.0.2.0/24 or 2001:db8::/32",
            Self::Bases(_) => "ACGT",
            Self::Hex | Self::Digits(_) => "5baa61e4",
            Self::Hash(_) | Self::Letters(_) | Self::Composite(_) => "any text",
        }
    }

    /// Returns what to do about a text that was rejected with `error`.
    #[must_use]
    pub fn advice(self, error: TextError) -> String {
        let example = self.example();
        match error {
            TextError::Parts | TextError::Form if let Self::Composite(parts) = self => {
                format!("give its {} parts, separated by commas, such as {example}", parts.all().len())
            }
            TextError::Form => match self {
                Self::Boolean => "use true or false".to_owned(),
                Self::Bases(_) => "use the bases A C G T alone".to_owned(),
                Self::Hex | Self::Digits(_) => "use the digits 0 to 9 and a to f alone".to_owned(),
                Self::Hash(_) | Self::Letters(_) => "use UTF-8".to_owned(),
                _ => format!("use {example}"),
            },
            TextError::Family => {
                format!("it is an address of the other family: use {example}, or the type ip, which has both")
            }
            TextError::Host => {
                "it has bits behind its length: use the first address of the network".to_owned()
            }
            TextError::Odd => "it has an odd number of digits: use two for each byte".to_owned(),
            TextError::Short => match self {
                Self::Digits(count) => format!("it has too few digits: use {count} or more"),
                _ => format!("it is too short: use {example}"),
            },
            TextError::Long => match self {
                Self::Bases(_) => {
                    format!("it has more than {BASES_MAX} bases: use shorter ones")
                }
                Self::Composite(_) => "it has more than 65,535 bytes: use shorter texts".to_owned(),
                _ => format!("it is too long: use {example}"),
            },
            TextError::Width(bytes) => format!("a part has another length: use {bytes} bytes"),
            TextError::Parts => format!("it has another number of parts: use {example}"),
            TextError::NoZone => {
                format!("it has no time zone: use {example}, or another zone such as +02:00")
            }
            TextError::Zone => format!("it has a time zone, but these times have none: use {example}"),
            TextError::Range => "it is outside the range of this type: use a value nearer to zero".to_owned(),
            TextError::Finer => match self {
                Self::Decimal(_, scale) => {
                    format!("it has more than {scale} digits after the point: use fewer digits")
                }
                Self::Time(unit) | Self::Timestamp(unit, _) | Self::Duration(unit) => {
                    format!(
                        "it is finer than {}: use at most {} digits of a second",
                        unit.name(),
                        unit.digits()
                    )
                }
                _ => "it is finer than this type: use fewer digits".to_owned(),
            },
        }
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "it has another form",
            Self::Finer => "it is finer than the type",
            Self::Range => "it is outside the range of the type",
            Self::NoZone => "it has no time zone",
            Self::Zone => "it has a time zone",
            Self::Family => "it is an address of the other family",
            Self::Host => "it has bits behind its length",
            Self::Odd => "it has an odd number of digits",
            Self::Short => "it has too few digits",
            Self::Long => "it is too long",
            Self::Width(_) => "a part has another length",
            Self::Parts => "it has another number of parts",
        })
    }
}

impl std::error::Error for TextError {}

/// Splits off the sign: true for minus, false for plus. Returns it with the rest.
fn signed(text: &[u8]) -> (Option<bool>, &[u8]) {
    match text {
        [b'-', rest @ ..] => (Some(true), rest),
        [b'+', rest @ ..] => (Some(false), rest),
        _ => (None, text),
    }
}

/// Reads a number of exactly `count` digits at the start. Returns it with the rest.
fn digits(text: &[u8], count: usize) -> Option<(i128, &[u8])> {
    let (digits, rest) = text.split_at_checked(count)?;
    let is_number = count > 0 && count < 30 && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| (digits.iter().fold(0, |number, digit| number * 10 + i128::from(digit - b'0')), rest))
}

/// Reads the date at the start, as days since 1970. Returns it with the rest.
fn date(text: &[u8]) -> Option<(i128, &[u8])> {
    let (sign, unsigned) = signed(text);
    let length = unsigned.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // Four digits, or a sign and as many digits as are needed.
    if !(4..=15).contains(&length) || (length > 4 && sign.is_none()) {
        return None;
    }
    let (year, rest) = digits(unsigned, length)?;
    let (month, rest) = digits(rest.strip_prefix(b"-")?, 2)?;
    let (day, rest) = digits(rest.strip_prefix(b"-")?, 2)?;
    let year = if sign == Some(true) { -year } else { year };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    (1..=days).contains(&day).then(|| (days_of(year, month, day), rest))
}

/// Returns the days since 1970 of a date in the proleptic Gregorian calendar, without limits in either
/// direction.
const fn days_of(year: i128, month: i128, day: i128) -> i128 {
    // Years that begin in March, eras of 400 years.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Appends the date of a day since 1970.
fn put_date(days: i64, out: &mut Vec<u8>) {
    // No sum below overflows 64 bits: a word of days has 32 bits, and a word of seconds was divided by those
    // of a day.
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + i64::from(month <= 2);
    if (0..=9999).contains(&year) {
        put_padded(year.unsigned_abs(), 4, out);
    } else {
        out.push(if year < 0 { b'-' } else { b'+' });
        put_padded(year.unsigned_abs(), 4, out);
    }
    out.push(b'-');
    put_padded(month.unsigned_abs(), 2, out);
    out.push(b'-');
    put_padded(day.unsigned_abs(), 2, out);
}

fn put_padded(number: u64, width: usize, out: &mut Vec<u8>) {
    let _ = write!(out, "{number:0width$}");
}

/// Reads the time at the start. Returns its seconds, the digits of its fraction, and the rest. `is_any`
/// permits more than a day.
fn clock(text: &[u8], is_any: bool) -> Option<(i128, &[u8], &[u8])> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (hours, rest) = digits(text, if is_any { length.clamp(2, 20) } else { 2 })?;
    let (minutes, rest) = digits(rest.strip_prefix(b":")?, 2)?;
    let (seconds, rest) = match rest.strip_prefix(b":") {
        Some(rest) => digits(rest, 2)?,
        // A fraction is one of seconds.
        None if rest.starts_with(b".") => return None,
        None => (0, rest),
    };
    let (fraction, rest): (&[u8], _) = match rest.strip_prefix(b".") {
        Some(rest) => match rest.split_at(rest.iter().take_while(|byte| byte.is_ascii_digit()).count()) {
            ([], _) => return None,
            parts => parts,
        },
        None => (&[], rest),
    };
    let fits = (is_any || hours < 24) && minutes < 60 && seconds < 60;
    fits.then_some((hours * 3600 + minutes * 60 + seconds, fraction, rest))
}

/// Converts seconds and the digits after their point into units.
fn ticks(seconds: i128, fraction: &[u8], unit: Unit) -> Result<i128, TextError> {
    let held = unit.digits() as usize;
    let (kept, rest) = fraction.split_at(fraction.len().min(held));
    if rest.iter().any(|&digit| digit != b'0') {
        return Err(TextError::Finer);
    }
    let padded = kept.iter().chain(core::iter::repeat(&b'0')).take(held);
    let fraction = padded.fold(0, |number, digit| number * 10 + i128::from(digit - b'0'));
    Ok(seconds * i128::from(unit.per_second()) + fraction)
}

/// Appends a time: hours, minutes, seconds, and as many digits of the fraction as are needed.
fn put_clock(ticks: u64, unit: Unit, out: &mut Vec<u8>) {
    let per_second = unit.per_second().unsigned_abs();
    let seconds = ticks / per_second;
    put_padded(seconds / 3600, 2, out);
    out.push(b':');
    put_padded(seconds / 60 % 60, 2, out);
    out.push(b':');
    put_padded(seconds % 60, 2, out);
    put_fraction(ticks % per_second, unit, out);
}

fn put_fraction(mut ticks: u64, unit: Unit, out: &mut Vec<u8>) {
    if ticks == 0 {
        return;
    }
    let mut width = unit.digits() as usize;
    while ticks.is_multiple_of(10) {
        ticks /= 10;
        width -= 1;
    }
    out.push(b'.');
    put_padded(ticks, width, out);
}

/// Reads a date, or a date and a time, as units since 1970. A date alone is its first moment. `zone` is
/// `Some(true)` if a zone is required; otherwise a zone is an error.
fn moment(text: &[u8], unit: Unit, zone: Option<bool>) -> Result<i128, TextError> {
    let (days, rest) = date(text).ok_or(TextError::Form)?;
    let (seconds, fraction, rest) = match rest {
        [] => return Ok(days * DAY_SECONDS * i128::from(unit.per_second())),
        [b'T' | b't' | b' ', rest @ ..] => clock(rest, false).ok_or(TextError::Form)?,
        _ => return Err(TextError::Form),
    };
    let offset = offset(rest).ok_or(TextError::Form)?;
    let offset = match (zone, offset) {
        (Some(true), Some(offset)) => offset,
        (Some(true), None) => return Err(TextError::NoZone),
        (_, None) => 0,
        (_, Some(_)) => return Err(TextError::Zone),
    };
    ticks(days * DAY_SECONDS + seconds - offset, fraction, unit)
}

/// Reads the seconds by which a clock is ahead of UTC: `Z`, `+02:00`, `+0200` or `+02`. The inner option is
/// `None` for an empty text, the outer one for an invalid text.
fn offset(text: &[u8]) -> Option<Option<i128>> {
    let (sign, rest) = match text {
        [] => return Some(None),
        [b'Z' | b'z'] => return Some(Some(0)),
        _ => signed(text),
    };
    let is_behind = sign?;
    let (hours, rest) = digits(rest, 2)?;
    let rest = rest.strip_prefix(b":").unwrap_or(rest);
    let minutes = if rest.is_empty() { 0 } else { digits(rest, 2).filter(|(_, rest)| rest.is_empty())?.0 };
    let seconds = hours * 3600 + minutes * 60;
    (hours < 24 && minutes < 60 && !text.ends_with(b":")).then_some(Some(if is_behind {
        -seconds
    } else {
        seconds
    }))
}

/// Reads a number, with or without a point, times ten to `exponent`. The result must be whole.
fn scaled(text: &[u8], exponent: i32) -> Result<i128, TextError> {
    let mut parts = text.splitn(2, |&byte| byte == b'.');
    let (whole, fraction) = (parts.next().unwrap_or_default(), parts.next());
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    if !is_number(whole) || fraction.is_some_and(|fraction| !is_number(fraction)) {
        return Err(TextError::Form);
    }
    let mut exponent = exponent;
    let mut number = 0_i128;
    let mut zeros = 0;
    let fraction = fraction.unwrap_or_default();
    exponent -= i32::try_from(fraction.len()).map_err(|_| TextError::Form)?;
    for digit in whole.iter().chain(fraction) {
        // Zeros are held back, since those at the end may be removed by the exponent.
        if *digit == b'0' {
            zeros += u32::from(number != 0);
            continue;
        }
        let power = 10_i128.checked_pow(zeros + 1).ok_or(TextError::Range)?;
        number = number.checked_mul(power).ok_or(TextError::Range)?;
        number = number.checked_add(i128::from(digit - b'0')).ok_or(TextError::Range)?;
        zeros = 0;
    }
    if number == 0 {
        return Ok(0);
    }
    let exponent = i64::from(exponent) + i64::from(zeros);
    if exponent < 0 {
        // The last digit is not zero.
        return Err(TextError::Finer);
    }
    let power = u32::try_from(exponent).ok().and_then(|exponent| 10_i128.checked_pow(exponent));
    power.and_then(|power| number.checked_mul(power)).ok_or(TextError::Range)
}

fn put_decimal(word: i64, scale: i8, out: &mut Vec<u8>) {
    if word < 0 {
        out.push(b'-');
    }
    let number = word.unsigned_abs();
    let Ok(scale) = u32::try_from(scale) else {
        let _ = write!(out, "{number}");
        if number != 0 {
            out.extend(core::iter::repeat_n(b'0', scale.unsigned_abs().into()));
        }
        return;
    };
    if scale == 0 {
        let _ = write!(out, "{number}");
        return;
    }
    // A power that overflows a word is greater than every number.
    let (whole, rest) = match 10_u64.checked_pow(scale) {
        Some(power) => (number / power, number % power),
        None => (0, number),
    };
    let _ = write!(out, "{whole}.");
    put_padded(rest, scale as usize, out);
}
