//! A join of two tables by the names of their columns: total spending of each customer.
//!
//! The second component of the key sorts a customer's name before the orders, which are streamed.

use gristmill::prelude::*;

/// Sum up the orders of each customer
#[derive(clap::Args, Serialize, Deserialize)]
struct Spending {
    /// CSV with the columns id and name
    customers: String,
    /// CSV with the columns customer and amount
    orders: String,
    #[arg(skip)]
    columns: [Columns; 2],
}

impl Spending {
    fn tables(&self) -> [Input; 2] {
        [&self.customers, &self.orders].map(|file| Input::csv([file], b',', true))
    }
}

impl Job for Spending {
    const NAME: &'static str = "spending";

    fn prepare(&mut self, files: &dyn Submitter) -> Result<(), PlanError> {
        let [customers, orders] = &self.tables();
        let of_order = files.columns(orders, &["customer", "amount"])?;
        self.columns = [files.columns(customers, &["id", "name"])?, of_order];
        Ok(())
    }

    fn plan(&self) -> Result<JobPlan, PlanError> {
        let ([customers, orders], [of_customer, of_order]) = (self.tables(), self.columns.clone());
        let name = move |row: Record<'_>, out: &mut Emitter<(String, bool), (String, u64)>| {
            let [id, name] = of_customer.fields(&row)?.map(String::from);
            out.emit((id, false), (name, 0));
            Ok(())
        };
        let joined = JobPlan::map_each(customers, name).map_each(orders, move |row, out| {
            let [id, amount] = of_order.fields(&row)?;
            out.emit((id.into(), true), (String::new(), parse(&amount)?));
            Ok(())
        });
        Ok(joined.group_by_first().reduce_each(|(id, is_order), rows, out| match rows.next()? {
            Some((name, _)) if !is_order => {
                out.pair((id, name), rows.iter().map(|(_, amount)| amount).sum::<u64>());
                Ok(())
            }
            _ => Err(TaskError::input(format!("customer {id} has orders, but no name"))),
        }))
    }
}

fn main() -> std::process::ExitCode {
    gristmill::cli::main(Registry::new().job::<Spending>())
}

#[test]
fn orders_are_summed_up_under_the_name_of_their_customer() {
    let with = |orders| {
        let job = Spending { customers: "c".into(), orders: "o".into(), columns: Default::default() };
        gristmill::testing::Trial::new(job).file("c", "name,id\nAda,7\nBo,9\n").file("o", orders).run()
    };
    let written = with("customer,day,amount\n7,Mo,5\n9,Mo,1\n7,Tu,3\n").unwrap();
    assert_eq!(written.lines(), ["7\tAda\t8", "9\tBo\t1"]);
    let wrong = with("amount,customer\n5,8\n").unwrap_err().to_string();
    assert!(wrong.contains("customer 8 has orders, but no name"), "{wrong}");
}
