//! Data of the demo: orders of three businesses with realistic ids, and questions about them.
//!
//! Everything follows from the seed. Orders are unordered, as from a queue or a table without an index. The
//! value of an order is its customer's number, drawn so that a few customers order much; it follows from the
//! id, not from the position in the table.

use crate::random::{Random, below, mix64};

/// An order: id and customer.
pub type Order = (u64, u32);

/// Scheme of the ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Business {
    /// `yyyymmdd` and a number that restarts each day: dense clusters with wide gaps.
    Shop,
    /// One counter for all events, some of which are orders: gaps of 1, of thousands, of millions.
    Market,
    /// 64 random bits.
    Partner,
}

impl Business {
    /// All businesses.
    pub const ALL: [Self; 3] = [Self::Shop, Self::Market, Self::Partner];

    /// Returns the name in tables and of its file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shop => "shop",
            Self::Market => "market",
            Self::Partner => "partner",
        }
    }

    /// Describes its ids.
    pub const fn ids(self) -> &'static str {
        match self {
            Self::Shop => "ids of date and daily number: clustered",
            Self::Market => "ids from a busy shared counter: skewed gaps",
            Self::Partner => "ids of 64 random bits",
        }
    }

    /// Returns about `count` orders with distinct ids, unordered.
    pub fn orders(self, count: u64, seed: u64) -> Vec<Order> {
        let mut random = Random::new(mix64(seed ^ mix64(self as u64 + 1)));
        let mut ids = match self {
            Self::Shop => shop_ids(count, &mut random),
            Self::Market => market_ids(count, &mut random),
            Self::Partner => (0..count).map(|_| random.next()).collect(),
        };
        ids.sort_unstable();
        ids.dedup();
        random.shuffle(&mut ids);
        ids.into_iter().map(|id| (id, customer(id))).collect()
    }
}

/// Number of days that the shop has been open.
const SHOP_DAYS: u64 = 3 * 365;
/// Factor of the date, which leaves room for the day's number.
pub const SHOP_DAY_IDS: u64 = 1_000_000_000;
/// Number of customers of every business.
const CUSTOMERS: u64 = 200_000;

/// Draws a customer: few order much, since the result is below the smaller of two draws.
fn customer(id: u64) -> u32 {
    let first = 1 + below(mix64(id ^ 0xC057), CUSTOMERS);
    let customer = 1 + below(mix64(id ^ 0x0E12), first);
    u32::try_from(customer).unwrap_or(u32::MAX)
}

/// Returns the days from 2023 on as yyyymmdd.
pub fn shop_days() -> Vec<u64> {
    let month_days = |year: u64, month: u64| match month {
        2 if year.is_multiple_of(4) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    (2023..)
        .flat_map(|year| (1..=12).map(move |month| (year, month)))
        .flat_map(|(year, month)| {
            (1..=month_days(year, month)).map(move |day| (year * 100 + month) * 100 + day)
        })
        .take(SHOP_DAYS as usize)
        .collect()
}

fn shop_ids(count: u64, random: &mut Random) -> Vec<u64> {
    let mut ids = Vec::with_capacity(count as usize);
    let days = shop_days();
    // Weights have a weekly rhythm, a rush before the end of the year, and some days with sales.
    let weight = |position: usize, date: u64| {
        let week = [10, 9, 9, 10, 13, 17, 14][position % 7];
        let season = if date / 100 % 100 >= 11 { 2 } else { 1 };
        let sale = if mix64(date).is_multiple_of(50) { 4 } else { 1 };
        week * season * sale
    };
    let weights: Vec<u64> = days.iter().enumerate().map(|(position, &date)| weight(position, date)).collect();
    let total: u64 = weights.iter().sum();
    let mut before = 0;
    for (date, weight) in days.iter().zip(weights) {
        let (first, last) = (count * before / total, count * (before + weight) / total);
        before += weight;
        let mut number = 0;
        for _ in first..last {
            // One in about 30 numbers is used for a cart that is never paid.
            number += if random.below(30) == 0 { 2 } else { 1 };
            ids.push(date * SHOP_DAY_IDS + number);
        }
    }
    ids
}

fn market_ids(count: u64, random: &mut Random) -> Vec<u64> {
    let mut id = 7_000_000_000;
    (0..count)
        .map(|_| {
            // Most gaps are 1 to 4; one in 2^k is up to 2^(2k).
            let rarity = random.next().trailing_zeros().min(16);
            id += 1 + random.below(4 << (2 * rarity.saturating_sub(2)));
            id
        })
        .collect()
}

/// Returns `count` ids to look up, unordered: half of them present, a quarter next to one that is, a quarter
/// anywhere; also the smallest and the largest possible number.
pub fn questions(orders: &[Order], count: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(mix64(seed));
    let mut questions = Vec::with_capacity(count);
    let (min, max) =
        orders.iter().fold((u64::MAX, 0), |(min, max), order| (order.0.min(min), order.0.max(max)));
    while questions.len() < count {
        let id = orders.get(random.below(orders.len() as u64) as usize).map_or(0, |order| order.0);
        questions.push(match random.below(4) {
            0 | 1 => id,
            2 => id.wrapping_add(if random.below(2) == 0 { 1 } else { u64::MAX }),
            _ => min.saturating_add(random.below((max - min.min(max)).max(1))),
        });
    }
    for (place, edge) in questions.iter_mut().zip([0, u64::MAX, min, max]) {
        *place = edge;
    }
    random.shuffle(&mut questions);
    questions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_distinct_and_follow_from_the_seed() {
        for business in Business::ALL {
            let orders = business.orders(10_000, 1);
            assert!((9_990..=10_000).contains(&orders.len()), "{}", business.name());
            let mut ids: Vec<u64> = orders.iter().map(|order| order.0).collect();
            assert!(!ids.is_sorted());
            ids.sort_unstable();
            assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
            assert_eq!(business.orders(10_000, 1), orders);
            assert_ne!(business.orders(10_000, 2), orders);
            let present = |id: &u64| ids.binary_search(id).is_ok();
            let found = questions(&orders, 4096, 3).iter().filter(|id| present(id)).count();
            assert!((1900..3600).contains(&found), "{} {found}", business.name());
        }
        assert!(Business::Shop.orders(1, 1).len() <= 1);
        assert_eq!(questions(&[], 8, 1).len(), 8);
    }

    #[test]
    fn days_are_dates() {
        let days = shop_days();
        assert_eq!((days[0], days[31], days[58], days[59]), (20230101, 20230201, 20230228, 20230301));
        assert!(days.contains(&20240229) && !days.contains(&20230229) && days.is_sorted());
    }
}
